// SPDX-License-Identifier: GPL-2.0-only
#include "record/compact.h"

#include <stdlib.h>
#include <string.h>

void compact_add(struct compact *compact, const char *text, size_t size)
{
	if (!compact->measuring) {
		if (compact->used + size > compact->room) {
			compact->room = 2 * (compact->used + size);
			compact->text = realloc(compact->text, compact->room);
		}
		memcpy(compact->text + compact->used, text, size);
	}
	compact->used += size;
}

void compact_add_text(struct compact *compact, const char *text)
{
	compact_add(compact, text, strlen(text));
}

void compact_add_integer(struct compact *compact, json_int_t number)
{
	char digits[24], *at = digits + sizeof(digits);
	unsigned long long left = number < 0 ? -(unsigned long long)number : (unsigned long long)number;

	do
		*--at = '0' + left % 10;
	while (left /= 10);
	if (number < 0)
		*--at = '-';
	compact_add(compact, at, digits + sizeof(digits) - at);
}

/* Whether JSON has the text as it is, between quotes. */
static bool plain(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\')
			return false;
	return true;
}

static int add_dumped(const char *text, size_t size, void *compact)
{
	compact_add(compact, text, size);
	return 0;
}

static void add_by_jansson(struct compact *compact, const json_t *value)
{
	json_dump_callback(value, add_dumped, compact, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
}

void compact_add_string(struct compact *compact, const char *text, size_t size)
{
	json_t *value;

	if (plain(text, size)) {
		compact_add(compact, "\"", 1);
		compact_add(compact, text, size);
		compact_add(compact, "\"", 1);
		return;
	}
	value = json_stringn_nocheck(text, size);
	add_by_jansson(compact, value);
	json_decref(value);
}

static void add_object(struct compact *compact, const json_t *object)
{
	const char *separator = "{", *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value) {
		compact_add(compact, separator, 1);
		separator = ",";
		compact_add_string(compact, name, strlen(name));
		compact_add(compact, ":", 1);
		compact_add_value(compact, value);
	}
	compact_add_text(compact, *separator == '{' ? "{}" : "}");
}

static void add_array(struct compact *compact, const json_t *array)
{
	compact_add(compact, "[", 1);
	for (size_t i = 0; i < json_array_size(array); i++) {
		if (i)
			compact_add(compact, ",", 1);
		compact_add_value(compact, json_array_get(array, i));
	}
	compact_add(compact, "]", 1);
}

void compact_add_value(struct compact *compact, const json_t *value)
{
	if (json_is_object(value))
		add_object(compact, value);
	else if (json_is_array(value))
		add_array(compact, value);
	else if (json_is_integer(value))
		compact_add_integer(compact, json_integer_value(value));
	else if (json_is_string(value))
		compact_add_string(compact, json_string_value(value), json_string_length(value));
	else
		add_by_jansson(compact, value);
}

size_t compact_bytes(const json_t *value)
{
	struct compact compact = {.measuring = true};

	compact_add_value(&compact, value);
	return compact.used;
}
