/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns the addresses in entries into code and into data, and sums up the entries of equal ones. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "aggregation/aggregation.h"
#include "base/interned.h"
#include "host/host.h"
#include "naming/codes.h"
#include "record/compact.h"

/* Numbers of codes, plus 1; 0: that is not asked for. */
struct fold_numbers {
	__u32 code, datum;
};

struct folded {
	const struct layout *layout;
	struct codes *codes;
	unsigned int detail;  /* of enum code_detail */
	struct interned keys; /* the members that are shown, the others 0; then struct fold_numbers */
	__u64 *values;	      /* sums, by the key's number */
	size_t room;	      /* the number of keys that `values` has room for */
	/* Keys that were not kept: their number, where a key that came again counts again, and the sum of
	 * their values. */
	__u64 nr_shed;
	__u64 *shed;
	struct entry *entries; /* set by folded_list(): an entry for each key */
	size_t nr_chosen;      /* set by folded_choose() */
};

/* The caller owns the result, and calls folded_release(). The layout and the codes must outlive it. */
struct folded *folded_new(const struct layout *layout, struct codes *codes, unsigned int detail);
void folded_release(struct folded *folded);

/* Takes in the entries of a reading, and sorts them, so that those with the most samples are named first. */
void folded_add(struct folded *folded, struct reading *reading);

/* Takes in an entry, unless there is no time for its name (see codes_time()): then returns false. */
bool folded_try(struct folded *folded, const struct entry *entry);

/* Chooses the at most `most` keys with the most weight, and marks their codes as used; the others are only
 * summed up. folded_keep() must follow, with the numbers that the used codes have now: see codes_keep(). */
void folded_choose(struct folded *folded, size_t most, bool *used);
void folded_keep(struct folded *folded, const __u32 *numbers);

/* Makes a list of entries, valid until keys are added. Returns their number. */
size_t folded_list(struct folded *folded);

/* Appends the members of an entry that are its code and its data. */
void folded_append(struct compact *text, const struct folded *folded, const struct entry *entry);

/* The data that an entry's address is, from the keys `cacheline` and `offset`. */
struct datum entry_datum(const struct layout *layout, const struct entry *entry, unsigned int detail);
