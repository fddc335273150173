/* SPDX-License-Identifier: GPL-2.0-only */
/* A growing buffer of text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TEXT_WIDTH 80 /* columns of a terminal */

/* Starts as {0}. The owner frees `bytes`, which end with a 0 that `used` does not count. */
struct text {
	char *bytes;
	size_t used, room;
	int width;  /* columns that lines should fit into; 0: there is no limit */
	bool ascii; /* what marks that something is left out has to be ASCII */
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Appends text with the characters replaced that must not reach a terminal: see base/visible.h. Newlines are
 * kept.
 */
void text_add_visible(struct text *text, const char *from);

/* Appends words, as text_add_visible() does, and a newline. Words that exceed TEXT_WIDTH, or the text's width
 * if that is less, continue on a new line, indented by `indent` spaces. A word that exceeds a line alone is
 * broken behind a comma. */
void text_wrap(struct text *text, int indent, const char *words);

/* The number of columns that text takes, which has no line feed. */
int text_columns(const char *of);

/* Appends text, as it is, but shortened to this many columns, or one or two fewer if wide characters don't
 * come out even: in the brackets of a C++ name, and then in its
 * middle, since what names have in common is often their beginning, and what tells them apart their end. */
void text_add_shortened(struct text *text, const char *of, int width);

/* Appends such a text and as many blanks as it has fewer columns, in front of it if `right`. */
void text_add_cell(struct text *text, const char *of, int width, bool right);

/* Makes lines that are wider than this fit: by taking blanks from between their columns if that is enough, or
 * else by breaking them at blanks. Shows characters as text_add_visible() does. Lines that begin with # go on
 * behind another #. */
void text_fit(struct text *text, int width);

/* Text for a terminal: of its width, and in ASCII if it does not take UTF-8. Without limits if the descriptor
 * is of no terminal. */
struct text text_for_terminal(int fd);

/* Writes such a text, and frees it. */
void text_print(struct text *text, FILE *out);

/* Whether the terminal takes UTF-8, by the locale's environment variables (LC_ALL, LC_CTYPE, LANG). */
bool text_takes_utf8(void);

/* Replaces characters outside of ASCII by similar ones, or by '?'. */
void text_to_ascii(struct text *text);
