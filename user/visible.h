/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Texts for a terminal. Names of programs, functions, events and files may hold any bytes; those that control
 * a terminal, or that reorder or hide the text around them, are shown as escapes.
 */
#ifndef NHMTAP_VISIBLE_H
#define NHMTAP_VISIBLE_H

#include <stddef.h>

/* Bytes that a character takes at most: "\U000e0001". */
#define VISIBLE_MAX 10

/*
 * Copies a text: control characters, formatting characters (Unicode's Cc, Cf, Zl, Zp) and bytes that are no
 * UTF-8 are written as \xNN, \uNNNN or \UNNNNNNNN. What does not fit is left out, from a whole character on.
 * Returns the bytes written, without the zero behind them; size > 0.
 */
size_t visible(char *to, size_t size, const char *from);

/* The same, and line feeds stay. */
size_t visible_lines(char *to, size_t size, const char *from);

/* Prints a line on stderr, made visible; the format has no line feed at its end. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sets a function that every say() calls before it prints, to clear the terminal's line. */
void say_behind(void (*make_room)(void));

#endif
