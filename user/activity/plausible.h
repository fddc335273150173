/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether counts of cycles and instructions can be true. Some virtual machines have a PMU that counts
 * nothing, stands still, or counts something else. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/count.h"

enum counted_kind { COUNTS_OTHERS, COUNTS_CYCLES, COUNTS_INSTRUCTIONS };

/* A count over a stretch of time. */
struct suspect {
	enum counted_kind kind;
	const char *name;
	struct count count;
	unsigned int sides; /* what it counts: equal numbers are of the same sides */
	/* Its time is that of a program that runs, in user mode and the kernel, and both are counted. */
	bool busy;
};

/* So long must a stretch be that something is said of it. */
#define PLAUSIBLE_NS 200000000ULL

/* Writes why a count can't be true. Returns whether it is so. */
bool implausible(const struct suspect *one, char *why, size_t size);

/* The same for two counts, if neither is an estimate and both counted for the same time. */
bool implausible_pair(const struct suspect *one, const struct suspect *other, char *why, size_t size);
