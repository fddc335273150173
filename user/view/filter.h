/* SPDX-License-Identifier: GPL-2.0-only */
/* Conditions on the keys of rows: comm=demo,symbol~loop. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "base/refusal.h"
#include "option/options.h"
#include "view/cells.h"

struct condition {
	char *key, *value;
	bool regular; /* the value is an extended regular expression, found anywhere in the text */
	bool not ;
	regex_t regex;
};

struct row_filter {
	struct condition *conditions;
	size_t nr;
};

/*
 * Parses conditions, of which all have to hold: KEY=TEXT, KEY!=TEXT, KEY~REGEX, KEY!~REGEX, separated by
 * commas. A comma that no KEY and operator follow belongs to the text. Returns 0, or -1 with the refusal;
 * row_filter_release() has to be called in either case.
 */
int row_filter_parse(struct row_filter *filter, const struct texts *given, struct refusal *refusal);
void row_filter_release(struct row_filter *filter);

/* Whether a row meets all conditions. One without the key meets none that is not negated. */
bool row_filter_takes(const struct row_filter *filter, const struct cell_source *cells);
