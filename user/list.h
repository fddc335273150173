/* SPDX-License-Identifier: GPL-2.0-only */
/* Comma-separated lists, as options have them. NULL is the empty list. */
#ifndef NHMTAP_LIST_H
#define NHMTAP_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the list has this word. */
bool list_has(const char *list, const char *word);

/* Returns the next word, which is not terminated, and sets *length; NULL at the end. `at` is NULL for the
 * first word, then the word returned last, with its *length. */
const char *list_next(const char *list, const char *at, size_t *length);

#endif
