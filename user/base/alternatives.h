/* SPDX-License-Identifier: GPL-2.0-only */
/* A word that is none of those that can be given: what was meant, and what there is to choose from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/nearest.h"
#include "base/refusal.h"

struct alternatives {
	char wanted[64];
	struct nearest nearest;
	char all[400]; /* the words that were offered, as list_append() writes them */
};

/* Begins with the first `length` bytes of what was given; longer words are cut. The struct must not move. */
void alternatives_begin(struct alternatives *alternatives, const char *wanted, size_t length);

/* Adds a word that could have been given. The string is borrowed until alternatives_end(). */
void alternatives_offer(struct alternatives *alternatives, const char *word);

/* Adds each word of an array that NULL ends. */
void alternatives_offer_all(struct alternatives *alternatives, const char *const *words);

/* Whether some word is near enough that it was probably meant. */
bool alternatives_near(const struct alternatives *alternatives);

/* Sets what a refusal tells to do next: "did you mean json? ", if some word is near, and then the text, for
 * example "formats: " and alternatives->all. Returns -1. */
int alternatives_end(const struct alternatives *alternatives, struct refusal *refusal, const char *next, ...)
	__attribute__((format(printf, 3, 4)));
