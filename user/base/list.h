/* SPDX-License-Identifier: GPL-2.0-only */
/* Comma-separated lists: those of options, where NULL is the empty list, and those of messages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether the list has this word. */
bool list_has(const char *list, const char *word);

/* Returns the next word, which is not terminated, and sets *length; NULL at the end. `at` is NULL for the
 * first word, then the word returned last, with its *length. */
const char *list_next(const char *list, const char *at, size_t *length);

/* Appends a word, after ", ", to the terminated text in a buffer of `size` bytes. The first word for which
 * there is no room is shown as "...", and what follows is left out. */
void list_append(char *buffer, size_t size, const char *word);

/* Appends each word of a list in the same way: "a,b" becomes "a, b". */
void list_append_all(char *buffer, size_t size, const char *list);
