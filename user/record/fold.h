/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns the addresses in entries into code, and sums up the entries of equal code. */
#ifndef NHMTAP_FOLD_H
#define NHMTAP_FOLD_H

#include <jansson.h>

#include "collection/aggregation.h"
#include "host/host.h"
#include "interned.h"
#include "naming/codes.h"

struct folded {
	const struct layout *layout;
	struct codes *codes;
	struct interned keys;  /* the members that are shown, the others 0; then the code's number */
	__u64 *values;	       /* sums, by the key's number */
	struct entry *entries; /* an entry for each key */
	size_t nr;
};

/*
 * Takes in the entries of a reading, and sorts them, so that those with the most samples are named first.
 * `folded` owns the keys and values until folded_release().
 */
void fold(struct folded *folded, const struct layout *layout, struct reading *reading, struct codes *codes,
	  unsigned int detail);
void folded_release(struct folded *folded);

/* An entry as a value of a record: the keys that are in use, the values, and the code. Returns a new
 * reference. */
json_t *folded_value(const struct host *host, const struct folded *folded, const struct entry *entry);

#endif
