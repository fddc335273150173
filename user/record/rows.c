// SPDX-License-Identifier: GPL-2.0-only
#include "record/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct compact *rows_begin(struct rows *rows)
{
	rows->begun = rows->text.used;
	return &rows->text;
}

/* The last element's comma is cut off at the end of the list. */
void rows_end(struct rows *rows)
{
	compact_close(&rows->text, rows->begun);
	if (rows->nr == rows->room)
		rows->sizes = xroom(rows->sizes, rows->nr, &rows->room, sizeof(*rows->sizes));
	rows->sizes[rows->nr++] = rows->text.used - rows->begun;
	*compact_reserve(&rows->text, 1) = ',';
	rows->text.used++;
}

void rows_release(struct rows *rows)
{
	free(rows->sizes);
	free(rows->text.text);
	*rows = (struct rows){0};
}

void rows_put(struct rows *rows, json_t *record, const char *name)
{
	size_t size = rows->text.used - !!rows->nr, head = sizeof(__u64) + rows->nr * sizeof(*rows->sizes);
	char *all = xmalloc(head + size);

	*(__u64 *)all = rows->nr;
	if (rows->nr) {
		memcpy(all + sizeof(__u64), rows->sizes, rows->nr * sizeof(*rows->sizes));
		memcpy(all + head, rows->text.text, size);
	}
	rows_release(rows);
	json_object_set_new(record, name, json_stringn_nocheck(all, head + size));
	free(all);
}

bool rows_text(const json_t *value, struct rows_text *rows)
{
	const char *all = json_string_value(value);
	size_t head;

	if (!all)
		return false;
	rows->nr = *(const __u64 *)all;
	head = sizeof(__u64) + rows->nr * sizeof(*rows->sizes);
	rows->sizes = (const __u32 *)(all + sizeof(__u64));
	rows->text = all + head;
	rows->size = json_string_length(value) - head;
	return true;
}

/* --- members ---------------------------------------------------------------------------------- */

/* The text is compact and was written by nhmtap, so each function trusts it. */

/* The closing quote of a string that begins at `at`, behind the opening one. */
static const char *end_of_string(const char *at, bool *escaped)
{
	*escaped = false;
	for (; *at != '"'; at++)
		if (*at == '\\') {
			*escaped = true;
			at++;
		}
	return at;
}

static const char *end_of_nested(const char *at)
{
	size_t depth = 0;
	bool escaped;

	do {
		if (*at == '"')
			at = end_of_string(at + 1, &escaped);
		else if (*at == '{' || *at == '[')
			depth++;
		else if (*at == '}' || *at == ']')
			depth--;
		at++;
	} while (depth);
	return at;
}

static const char *end_of_value(const char *at)
{
	bool escaped;

	if (*at == '"')
		return end_of_string(at + 1, &escaped) + 1;
	if (*at == '{' || *at == '[')
		return end_of_nested(at);
	while (*at != ',' && *at != '}')
		at++;
	return at;
}

const char *rows_member(const char *at, struct rows_member *member)
{
	const char *end;
	bool escaped;

	if (*++at != '"')
		return NULL;
	member->name = at + 1;
	end = end_of_string(member->name, &escaped);
	member->name_length = end - member->name;
	member->value = end + strlen("\":");
	end = end_of_value(member->value);
	member->value_length = end - member->value;
	return end;
}

/* --- lists of jansson's ------------------------------------------------------------------------ */

/*
 * json_loads() reads a character at a time, with a call for each, and takes longer than to make the objects.
 * Each function here returns where it stopped.
 */
static const char *value_at(const char *at, json_t **value);

/* Strings with escapes, numbers that are not integers, true, false, null. */
static const char *other_at(const char *at, size_t size, json_t **value)
{
	*value = had(json_loadb(at, size, JSON_DECODE_ANY, NULL));
	return at + size;
}

static const char *string_at(const char *at, json_t **value)
{
	bool escaped;
	const char *end = end_of_string(at + 1, &escaped);

	if (escaped)
		return other_at(at, end + 1 - at, value);
	*value = json_stringn_nocheck(at + 1, end - at - 1);
	return end + 1;
}

static const char *number_at(const char *at, json_t **value)
{
	size_t size = strcspn(at, ",]}"), sign = *at == '-';
	unsigned long long number = 0;

	for (size_t i = sign; i < size; i++) {
		if (at[i] < '0' || at[i] > '9')
			return other_at(at, size, value);
		number = 10 * number + (at[i] - '0');
	}
	*value = json_integer(sign ? -number : number);
	return at + size;
}

static const char *array_at(const char *at, json_t **value)
{
	*value = json_array();
	for (at++; *at != ']'; at += *at == ',') {
		json_t *element;

		at = value_at(at, &element);
		json_array_append_new(*value, element);
	}
	return at + 1;
}

/* Names are those of the record's schema, and short. */
#define NAME_MOST 64

static const char *object_at(const char *at, json_t **value)
{
	*value = json_object();
	for (at++; *at != '}'; at += *at == ',') {
		char name[NAME_MOST];
		const char *end = strchr(at + 1, '"');
		size_t length = end - at - 1 < NAME_MOST - 1 ? end - at - 1 : NAME_MOST - 1;
		json_t *member;

		memcpy(name, at + 1, length);
		name[length] = 0;
		at = value_at(end + 2, &member);
		json_object_set_new_nocheck(*value, name, member);
	}
	return at + 1;
}

static const char *value_at(const char *at, json_t **value)
{
	switch (*at) {
	case '{':
		return object_at(at, value);
	case '[':
		return array_at(at, value);
	case '"':
		return string_at(at, value);
	default:
		return number_at(at, value);
	}
}

json_t *rows_element(const char *text)
{
	json_t *element;

	object_at(text, &element);
	return element;
}

void rows_open(json_t *record, const char *name)
{
	struct rows_text rows;
	const char *at;
	json_t *list;

	if (!rows_text(json_object_get(record, name), &rows))
		return;
	list = json_array();
	at = rows.text;
	for (size_t i = 0; i < rows.nr; i++, at++) {
		json_t *element;

		at = object_at(at, &element);
		json_array_append_new(list, element);
	}
	json_object_set_new(record, name, list);
}
