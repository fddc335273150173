/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes texts safe for a terminal. Names of programs, functions, events and files may contain any bytes.
 * Those that control a terminal, or reorder or hide the text around them, are shown as escapes. */
#pragma once

#include <stddef.h>

/* The most bytes that a character takes: "\U000e0001". */
#define VISIBLE_MAX 10

/*
 * Copies a text. Control characters, formatting characters (Unicode's Cc, Cf, Zl, Zp) and bytes that are not
 * UTF-8 are written as \xNN, \uNNNN or \UNNNNNNNN. If the text does not fit, it is cut at a whole character.
 * Returns the number of bytes written, without the final zero byte. `size` must be greater than 0.
 */
size_t visible(char *to, size_t size, const char *from);

/* The same, but keeps line feeds. */
size_t visible_lines(char *to, size_t size, const char *from);

/* The bytes of the whole characters in the first `most` bytes of a text that has more. */
static inline size_t whole_characters(const char *text, size_t most)
{
	while (most && (text[most] & 0xc0) == 0x80)
		most--;
	return most;
}

/* The bytes of a message that say() shows. */
#define MESSAGE_MAX 4096

/* Prints a line on stderr, made safe by visible(). The format has no line feed at its end. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct refusal;

/* Prints a refusal as a sentence; nothing if `asked` is empty. */
void say_refusal(const struct refusal *refusal);

/* Sets a function that every say() calls before it prints, to clear the terminal's line. */
void say_behind(void (*make_room)(void));
