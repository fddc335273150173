/* SPDX-License-Identifier: GPL-2.0-only */
/* Text for people, of any length. */
#ifndef NHMTAP_TEXT_H
#define NHMTAP_TEXT_H

#include <stddef.h>

#define TEXT_WIDTH 80 /* columns of a screen */

/* Starts as {0}; whoever has it frees bytes, which end with a 0 that used does not count. */
struct text {
	char *bytes;
	size_t used, room;
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds what may be shown on a terminal, see visible.h; line feeds stay. */
void text_add_visible(struct text *text, const char *from);

/* Adds words, made visible, and ends the line. Text that does not fit the screen continues on a new line
 * after `indent` spaces. */
void text_wrap(struct text *text, int indent, const char *words);

/* Replaces characters that are not ASCII by similar ones; a character without a similar one becomes '?'. */
void text_to_ascii(struct text *text);

#endif
