/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Documents as requests of HTTP, one after the other: POST to one URL, in the form that the server at its
 * path documents. A request that an overloaded server refuses is sent again, after the pause that it asks
 * for, or after growing pauses.
 */
#ifndef NHMTAP_PUSH_H
#define NHMTAP_PUSH_H

#include <stdbool.h>

#include "output/documents.h"
#include "refusal.h"

struct push;

/* Whether a place is a URL. */
bool push_is(const char *place);

/* `format`, `media`: what documents are. The URL stays the caller's, and must live as long. Returns NULL with
 * the refusal. */
struct push *push_open(const char *url, const char *format, const char *media, struct refusal *refusal);
void push_close(struct push *push);

/* A descriptor that is readable when push_step() has something to do. */
int push_fd(const struct push *push);

/* Whether the first document is on its way. */
bool push_is_busy(const struct push *push);

/* How often a document was sent on its way. */
unsigned long long push_tries(const struct push *push);

/*
 * Does what can be done without waiting. Documents that the server has taken are removed; those that it
 * refuses for good are reported on stderr, counted as dropped, and removed. Returns 0, or the errno that
 * blocks it.
 */
int push_step(struct push *push, struct documents *documents);

#endif
