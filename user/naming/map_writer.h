/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* The process that writes a perf-PID.map. A file that was last written before it began is of another one that
 * had the same number: /tmp may outlive a container, and each has a process 1. */
struct map_writer {
	uid_t user;   /* the file must be this user's, or root's */
	time_t since; /* when the process began: seconds of CLOCK_REALTIME; 0: not known */
	bool ended;   /* the process has ended, so it writes no more */
};
