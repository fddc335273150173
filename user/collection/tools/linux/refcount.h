/* SPDX-License-Identifier: GPL-2.0-only */
/* Stands in for the kernel tree's tools/include/linux/refcount.h, on which libperf's installed
 * internal headers lean without bringing it. Only its presence and its size matter to libperf_fd.c. */
#pragma once

typedef struct {
	int refs;
} refcount_t;
