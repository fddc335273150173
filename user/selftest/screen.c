// SPDX-License-Identifier: GPL-2.0-only
/* The table of doctor --selftest: a line for each test, and below it what was expected and what was
 * measured. */
#include <string.h>

#include "output/table.h"

#define NAMES  15 /* more than the longest name has, so that a blank follows */
#define INDENT (NAMES + 11)

static void add_words(struct text *text, const char *before, const char *words)
{
	text_add(text, "%*s%s", INDENT, "", before);
	text_wrap(text, INDENT + strlen(before), words);
}

static void selftest_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const char *verdict = string(record, "verdict");

	text_add(text, "%-*s%-11s", NAMES, string(record, "name"),
		 strcmp(verdict, "left_out") ? verdict : "left out");
	text_wrap(text, INDENT, string(record, "title"));
	if (*string(record, "why"))
		add_words(text, "why: ", string(record, "why"));
	if (!strcmp(verdict, "failed"))
		add_words(text, "expected: ", string(record, "expected"));
	if (*string(record, "came"))
		add_words(text, "came: ", string(record, "came"));
}

REGISTER_TABLE(selftest, selftest_table);
