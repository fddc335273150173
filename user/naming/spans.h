/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the range that applies to an address, among many that may be nested or overlap. */
#pragma once

#include <stddef.h>
#include <linux/types.h>

struct span {
	__u64 low, high; /* first address, and the one after the last; empty ranges are ignored */
	__u32 order;	 /* if ranges overlap, the highest applies; if equal, the one that begins last */
	__u32 what;	 /* the result of a lookup; not SPANS_NONE */
};

#define SPANS_NONE ((__u32)-1)

/* The ranges, cut into pieces that do not overlap: a lookup takes logarithmic time, however the ranges
 * overlap. */
struct spans {
	struct piece {
		__u64 low;
		__u32 what;		  /* SPANS_NONE for a gap */
	} __attribute__((packed)) * list; /* a large library has 300,000 */
	size_t nr;
};

/* Makes the pieces. The list is reordered; the caller still owns it. */
void spans_make(struct spans *spans, struct span *list, size_t nr);

/* The same of ranges that are already in the order of their first addresses, and are nowhere in a list:
 * span_at() returns number i, and is called once for each. */
void spans_of_ordered(struct spans *spans, size_t nr, struct span (*span_at)(const void *of, size_t i),
		      const void *of);

/* Returns `what` of the range that applies; SPANS_NONE if there is none. */
__u32 spans_find(const struct spans *spans, __u64 address);

void spans_release(struct spans *spans);
size_t spans_bytes(const struct spans *spans);
