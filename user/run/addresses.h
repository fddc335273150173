/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the addresses of a run lie and what is there: the kernel's notes, read as they come, and the
 * names that are looked up once the tables have been read. */
#ifndef NHMTAP_ADDRESSES_H
#define NHMTAP_ADDRESSES_H

#include <jansson.h>

#include "naming/codes.h"
#include "naming/mappings.h"
#include "refusal.h"
#include "run/run.h"

struct addresses;

/* Begins to listen, then looks at those that the run is about and that are there already. To be called
 * before anything is counted. `detail` is all that will be asked for. Returns 0, or -1 with the
 * refusal. */
int addresses_open(struct addresses **addresses, const struct run *run, unsigned int detail,
		struct refusal *refusal);
void addresses_close(struct addresses *addresses);

/* Readable when there are notes. */
int addresses_fd(const struct addresses *addresses);

/* Takes in the notes that are there; `all`: also those so young that an older one may still come from
 * another CPU. What has been sampled before is then known. */
void addresses_take(struct addresses *addresses, bool all);

/* An interval is over, and the next one began at this time: see mappings_begin(). */
void addresses_begin(struct addresses *addresses, const struct timespec *since);

struct mappings *addresses_mappings(struct addresses *addresses);

/*
 * The codes of this interval, up to addresses_begin(). Where records come in intervals, names may take half
 * of one from now on, so that the next is read when it is over; what is not named by then goes by its
 * place. The last one of a run may take the time that it needs.
 */
struct codes *addresses_codes(struct addresses *addresses);

/* How many have names, why others have not, and what was lost of the notes, for the end record; a new
 * reference. */
json_t *addresses_value(const struct addresses *addresses);

#endif
