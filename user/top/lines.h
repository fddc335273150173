/* SPDX-License-Identifier: GPL-2.0-only */
/* Lines of a screen, before they are cut to its size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "view/sheet.h"

enum line_style {
	LINE_PLAIN,
	LINE_TITLE,   /* names a table */
	LINE_COLUMNS, /* headings of columns */
	LINE_REMARK,  /* what can't be trusted, or is not all */
	LINE_BAR,     /* the first and the last line of the screen */
	LINE_CHOSEN,  /* the row that the cursor is on */
	LINE_STYLES,
};

struct screen_line {
	char *text;
	enum line_style style;
	char *function; /* what Enter shows more of; NULL: nothing */
};

/* Starts as {0}. */
struct screen_lines {
	struct screen_line *list;
	size_t nr, room;
	size_t rows; /* of tables */
	bool ascii;  /* what marks that something is left out has to be ASCII; see line_fitting() */
};

/* Adds each line of a text. Those that begin with # are remarks. */
void lines_add(struct screen_lines *lines, const char *text, enum line_style style);

/* The same of sentences: longer lines are broken between words. */
void lines_add_words(struct screen_lines *lines, const char *text, int width, enum line_style style);

/* Adds a table, of which the rows with this text remain, in small letters or large; "": all. */
void lines_add_sheet(struct screen_lines *lines, const struct sheet *sheet, int width, const char *wanted);

void lines_release(struct screen_lines *lines);

/*
 * Makes a text fit into `width` columns of a terminal, and fills them up with blanks. Nothing that would
 * control the terminal, change the direction of the text or be drawn over another character remains. utf8:
 * the terminal takes other characters than ASCII, as the locale of LC_CTYPE says. The caller frees the text.
 */
char *line_fitting(const char *text, int width, bool utf8);
