// SPDX-License-Identifier: GPL-2.0-only
#include "top/lines.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/memory.h"
#include "base/visible.h"
#include "output/text.h"

static void add_line(struct screen_lines *lines, const char *text, size_t length, enum line_style style,
		     const char *function)
{
	char *copy = xmalloc(length + 1);

	memcpy(copy, text, length);
	copy[length] = '\0';
	lines->list = xroom(lines->list, lines->nr, &lines->room, sizeof(*lines->list));
	lines->list[lines->nr++] =
		(struct screen_line){copy, style, function && *function ? xstrdup(function) : NULL};
}

void lines_add(struct screen_lines *lines, const char *text, enum line_style style)
{
	while (text && *text) {
		size_t length = strcspn(text, "\n");

		add_line(lines, text, length, *text == '#' ? LINE_REMARK : style, NULL);
		text += length + !!text[length];
	}
}

void lines_add_words(struct screen_lines *lines, const char *text, int width, enum line_style style)
{
	struct text broken = {.ascii = lines->ascii};

	text_add(&broken, "%s", text ?: "");
	if (broken.used)
		text_fit(&broken, width);
	lines_add(lines, broken.bytes, style);
	free(broken.bytes);
}

void lines_add_sheet(struct screen_lines *lines, const struct sheet *sheet, int width, const char *wanted)
{
	struct text text = {.ascii = lines->ascii};
	const char *at;

	sheet_print(sheet, &text, width);
	at = text.bytes ?: "";
	for (size_t row = 0; *at; row++) {
		size_t length = strcspn(at, "\n");
		char *line = strndup(at, length);

		had(line);
		if (!row || !*wanted || strcasestr(line, wanted)) {
			lines->rows += row && row <= sheet->nr / sheet->nr_columns;
			add_line(lines, at, length, row ? LINE_PLAIN : LINE_COLUMNS,
				 row && row <= sheet->nr_tags ? sheet->tags[row - 1] : NULL);
		}
		free(line);
		at += length + !!at[length];
	}
	free(text.bytes);
}

void lines_release(struct screen_lines *lines)
{
	for (size_t i = 0; i < lines->nr; i++) {
		free(lines->list[i].text);
		free(lines->list[i].function);
	}
	free(lines->list);
	*lines = (struct screen_lines){.ascii = lines->ascii};
}

/* Adds one character. Returns the number of columns that it takes. */
static int add_character(struct text *text, const char *at, size_t length, wchar_t character, int left)
{
	char escape[12];
	int width = wcwidth(character);

	if (width <= 0)
		width = snprintf(escape, sizeof(escape),
				 (unsigned)character < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)character);
	else
		snprintf(escape, sizeof(escape), "%.*s", (int)length, at);
	if (width <= left)
		text_add(text, "%s", escape);
	return width;
}

static void add_columns_of(struct text *text, const char *from, int width)
{
	mbstate_t state = {0};
	int left = width;

	while (*from && left > 0) {
		wchar_t character;
		size_t length = mbrtowc(&character, from, strlen(from), &state);

		if (length == (size_t)-1 || length == (size_t)-2) {
			state = (mbstate_t){0};
			text_add(text, "?");
			length = 1;
			left--;
		} else {
			int columns = add_character(text, from, length, character, left);

			if (columns > left)
				break;
			left -= columns;
		}
		from += length;
	}
	text_add(text, "%*s", left > 0 ? left : 0, "");
}

char *line_fitting(const char *from, int width, bool utf8)
{
	size_t size = VISIBLE_MAX * strlen(from) + 1;
	char *shown = xmalloc(size);
	struct text safe = {0}, text = {0};

	visible(shown, size, from);
	text_add(&safe, "%s", shown);
	free(shown);
	if (utf8) {
		add_columns_of(&text, safe.bytes, width);
	} else {
		text_to_ascii(&safe);
		text_add(&text, "%-*.*s", width, width, safe.bytes ?: "");
	}
	free(safe.bytes);
	return text.bytes;
}
