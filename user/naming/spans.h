/* SPDX-License-Identifier: GPL-2.0-only */
/* Which of many ranges of addresses, nested or overlapping, is meant at an address. */
#ifndef NHMTAP_SPANS_H
#define NHMTAP_SPANS_H

#include <stddef.h>
#include <linux/types.h>

struct span {
	__u64 low, high; /* the first address, and the one behind the last; empty ones are ignored */
	__u32 order;	 /* where several are, the highest is meant; of equals the one that begins last */
	__u32 what;	 /* the answer; not SPANS_NONE */
};

#define SPANS_NONE ((__u32)-1)

/* Pieces that do not overlap: an address is looked up in the logarithm of their number, however the
 * ranges lie. */
struct spans {
	struct piece {
		__u64 low;
		__u32 what; /* SPANS_NONE in a gap */
	} * list;
	size_t nr;
};

/* Makes the pieces; the list is put in another order, and remains the caller's. */
void spans_make(struct spans *spans, struct span *list, size_t nr);

/* The `what` of the range that is meant, SPANS_NONE if there is none. */
__u32 spans_find(const struct spans *spans, __u64 address);

void spans_release(struct spans *spans);
size_t spans_bytes(const struct spans *spans);

#endif
