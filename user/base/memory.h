/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program's own memory. A failed allocation ends the program with a message and status 2, so no caller
 * has to check. Libraries that accept an allocator get this one.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* The same as malloc(3), calloc(3), realloc(3), strdup(3), asprintf(3) and open_memstream(3), except that
 * they never fail. */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xcalloc(size_t nr, size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xrealloc(void *memory, size_t size) __attribute__((returns_nonnull, warn_unused_result));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull, warn_unused_result));
char *xasprintf(const char *format, ...)
	__attribute__((format(printf, 1, 2), malloc, returns_nonnull, warn_unused_result));
FILE *xopen_memstream(char **text, size_t *size) __attribute__((returns_nonnull, warn_unused_result));

/* Closes a stream of xopen_memstream(). Its text is complete afterwards. */
void xclose_memstream(FILE *stream);

/* Returns the list with room for at least one more item after its `nr` items of `size` bytes. *room is the
 * number of items that it has room for; it is doubled when the list is full. */
void *xroom(void *list, size_t nr, size_t *room, size_t size)
	__attribute__((returns_nonnull, warn_unused_result));

/* The same with room for at least `wanted` items; a list that is too short gets room for twice as many. */
void *xfit(void *list, size_t wanted, size_t *room, size_t size)
	__attribute__((returns_nonnull, warn_unused_result));

/* Makes a list of `nr` items, which stays short, one longer. Returns its last item, which has no value yet.
 */
#define xappend(list, nr) ((list) = xrealloc((list), ((nr) + 1) * sizeof(*(list))), &(list)[(nr)++])

/* Returns the list with room for only its `nr` items, if that gives memory back to the system. For lists that
 * are filled again and again: the next filling is expected to be about as long. */
void *xtrim(void *list, size_t nr, size_t *room, size_t size) __attribute__((warn_unused_result));

/* Returns a library's result, which must be NULL only if memory has run out; then the program ends. */
void *had(void *made) __attribute__((returns_nonnull));

/* Sets a function that is called before the program ends for lack of memory, if that happens in the main
 * thread. The function must not allocate memory. NULL: none. */
void memory_last_words(void (*say)(void *context), void *context);

/* Prints that there is no memory, and ends the program. */
void memory_is_out(void) __attribute__((noreturn));
