/* SPDX-License-Identifier: GPL-2.0-only */
/* What is measured. */
#ifndef NHMTAP_TARGET_H
#define NHMTAP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cpus.h"

struct target {
	char **command; /* NULL-terminated, from argv; NULL if there is none */
	pid_t *pids;
	size_t nr_pids;
	bool cpus_given; /* everything on these CPUs, whatever runs there */
	struct cpus cpus;
};

#endif
