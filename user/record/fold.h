/* SPDX-License-Identifier: GPL-2.0-only */
/* Entries whose addresses become names, and entries of one name one entry. */
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
	struct interned keys;  /* the key's shown members, the others zero; then the code's number */
	__u64 *values;	       /* by the key's number */
	struct entry *entries; /* one a key */
	size_t nr;
};

/* Takes in entries, which are sorted to that end: those with the most samples get their names first.
 * Keys and values are folded's own up to folded_release(). */
void fold(struct folded *folded, const struct layout *layout, struct reading *reading, struct codes *codes,
	  unsigned int detail);
void folded_release(struct folded *folded);

/* An entry as a value of a record: the keys in use, the values, the code. A new reference. */
json_t *folded_value(const struct host *host, const struct folded *folded, const struct entry *entry);

#endif
