/* SPDX-License-Identifier: GPL-2.0-only */
/* A stored stream of records in a bounded form, over time: what the page of nhmtap report is drawn from. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "view/reading.h"

struct digest;

struct digest *digest_new(void);
void digest_release(struct digest *digest);

/* Takes in a record of any type, in the order of the stream. It is not kept. */
void digest_take(struct digest *digest, const json_t *record);

/* Makes the parts that the time is divided into at least as long as those of another stream. Before the first
 * record is taken in, they begin as long as those. */
void digest_align(struct digest *digest, const struct digest *other);

/* Whether there is anything to show. */
bool digest_has_content(const struct digest *digest);

/* The stream as one value, of at most about `bytes` as JSON text. `name` and `end` are the stream's.
 * `other` is the stream that it is compared with, NULL if there is none. Returns a new reference. */
json_t *digest_value(const struct digest *digest, const struct digest *other, const char *name,
		     const struct stored_end *end, size_t bytes);
