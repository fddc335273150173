// SPDX-License-Identifier: GPL-2.0-only
#include "view/filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define KEY_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_."

/* The length of the operator at `text`: that of =, ~, != or !~; 0 if there is none. */
static size_t operator_at(const char *text)
{
	size_t not = *text == '!';

	return text[not ] == '=' || text[not ] == '~' ? not +1 : 0;
}

/* Whether a condition begins here. */
static bool begins_condition(const char *text)
{
	size_t key = strspn(text, KEY_LETTERS);

	return key && operator_at(text + key);
}

/* The length of the first condition of a list. */
static size_t condition_length(const char *text)
{
	size_t length = strcspn(text, ",");

	while (text[length] && !begins_condition(text + length + 1))
		length += 1 + strcspn(text + length + 1, ",");
	return length;
}

static int refuse_filter(const char *text, const char *why, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --filter '%.200s'", text);
	because(refusal, "%s", why);
	return instead(refusal, "comm=NAME, comm!=NAME, symbol~REGEX or symbol!~REGEX, separated by commas");
}

static int add_condition(struct row_filter *filter, const char *text, size_t length, struct refusal *refusal)
{
	size_t key = strspn(text, KEY_LETTERS), operator= operator_at(text + key);
	struct condition *condition;
	char why[200];
	int err;

	if (!key || !operator)
		return refuse_filter(text, "a condition is a key, an operator and a text", refusal);
	filter->conditions = xrealloc(filter->conditions, (filter->nr + 1) * sizeof(*condition));
	condition = &filter->conditions[filter->nr];
	*condition = (struct condition){
		.key = strndup(text, key),
		.value = strndup(text + key + operator, length - key - operator),
		.not = text[key] == '!',
	};
	had(condition->key);
	had(condition->value);
	filter->nr++;
	if (text[key + operator- 1] != '~')
		return 0;
	err = regcomp(&condition->regex, condition->value, REG_EXTENDED | REG_NOSUB);
	if (err) {
		regerror(err, &condition->regex, why, sizeof(why));
		return refuse_filter(text, why, refusal);
	}
	condition->regular = true;
	return 0;
}

int row_filter_parse(struct row_filter *filter, const struct texts *given, struct refusal *refusal)
{
	*filter = (struct row_filter){0};
	for (size_t i = 0; i < given->nr; i++) {
		const char *at = given->list[i];
		size_t length;

		do {
			length = condition_length(at);
			if (add_condition(filter, at, length, refusal))
				return -1;
			at += length;
		} while (*at++);
	}
	return 0;
}

void row_filter_release(struct row_filter *filter)
{
	for (size_t i = 0; i < filter->nr; i++) {
		free(filter->conditions[i].key);
		free(filter->conditions[i].value);
		if (filter->conditions[i].regular)
			regfree(&filter->conditions[i].regex);
	}
	free(filter->conditions);
	*filter = (struct row_filter){0};
}

static bool is_met(const struct condition *condition, const struct cell_source *cells)
{
	char buffer[CELL_TEXT_MAX];
	const char *text = cell_text(cells, condition->key, buffer, sizeof(buffer));

	if (!text)
		return condition->not ;
	if (condition->regular)
		return !regexec(&condition->regex, text, 0, NULL, 0) != condition->not ;
	return !strcmp(text, condition->value) != condition->not ;
}

bool row_filter_takes(const struct row_filter *filter, const struct cell_source *cells)
{
	for (size_t i = 0; i < filter->nr; i++)
		if (!is_met(&filter->conditions[i], cells))
			return false;
	return true;
}
