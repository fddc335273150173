/* SPDX-License-Identifier: GPL-2.0-only */
/* The time in which CPUs were idle, as the kernel accounts for it (/proc/stat). */
#pragma once

#include "base/cpus.h"

/* Zeros are a reading of nothing. The caller must call idle_release(). */
struct idle {
	double *seconds; /* per CPU, since it was booted */
	size_t nr;
};

/* Reads the idle time of all CPUs. */
void idle_read(struct idle *idle);
void idle_release(struct idle *idle);

/* The idle time of these CPUs since the reading, in seconds. CPUs that were not there then have none. */
double idle_beyond(const struct idle *before, const struct cpus *cpus);
