/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program's own memory. A failed allocation ends the program with a message and status 2, so no caller
 * has to check. Libraries that accept an allocator get this one.
 */
#ifndef NHMTAP_MEMORY_H
#define NHMTAP_MEMORY_H

#include <stddef.h>
#include <stdio.h>

/* As malloc(3), calloc(3), realloc(3), strdup(3), asprintf(3) and open_memstream(3), but for failing. */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xcalloc(size_t nr, size_t size) __attribute__((malloc, returns_nonnull, warn_unused_result));
void *xrealloc(void *memory, size_t size) __attribute__((returns_nonnull, warn_unused_result));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull, warn_unused_result));
char *xasprintf(const char *format, ...)
	__attribute__((format(printf, 1, 2), malloc, returns_nonnull, warn_unused_result));
FILE *xopen_memstream(char **text, size_t *size) __attribute__((returns_nonnull, warn_unused_result));

/* Ends a stream of xopen_memstream(): its text is whole then. */
void xclose_memstream(FILE *stream);

/* A list with room for one more behind its `nr` items of `size` bytes; *room: how many it has room for,
 * doubled where it is full. */
void *xroom(void *list, size_t nr, size_t *room, size_t size)
	__attribute__((returns_nonnull, warn_unused_result));

/* Passes on a library's result, which is NULL only if memory has run out. */
void *had(void *made) __attribute__((returns_nonnull));

/* Called before the program ends for want of memory, in the thread that began the program; must not
 * allocate. NULL: nothing is. */
void memory_last_words(void (*say)(void *context), void *context);

/* Says that there is no memory, and ends the program. */
void memory_is_out(void) __attribute__((noreturn));

#endif
