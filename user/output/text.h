/* SPDX-License-Identifier: GPL-2.0-only */
/* A growing buffer of text. */
#ifndef NHMTAP_TEXT_H
#define NHMTAP_TEXT_H

#include <stddef.h>

#define TEXT_WIDTH 80 /* columns of a terminal */

/* Starts as {0}. The owner frees `bytes`, which end with a 0 that `used` does not count. */
struct text {
	char *bytes;
	size_t used, room;
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Appends text with the characters replaced that must not reach a terminal: see base/visible.h. Newlines are
 * kept.
 */
void text_add_visible(struct text *text, const char *from);

/* Appends words, as text_add_visible() does, and a newline. Words that exceed TEXT_WIDTH continue on a new
 * line, indented by `indent` spaces. */
void text_wrap(struct text *text, int indent, const char *words);

/* Replaces characters outside of ASCII by similar ones, or by '?'. */
void text_to_ascii(struct text *text);

#endif
