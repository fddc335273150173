// SPDX-License-Identifier: GPL-2.0-only
#include "record/compact.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "record/digits.h"

char *compact_reserve(struct compact *compact, size_t size)
{
	if (compact->used + size > compact->room) {
		compact->room = 2 * (compact->used + size);
		compact->text = xrealloc(compact->text, compact->room);
	}
	return compact->text + compact->used;
}

void compact_add(struct compact *compact, const char *text, size_t size)
{
	if (!compact->measuring) {
		memcpy(compact_reserve(compact, size), text, size);
	}
	compact->used += size;
}

void compact_add_text(struct compact *compact, const char *text)
{
	compact_add(compact, text, strlen(text));
}

#define INTEGER_MOST 20 /* "-9223372036854775808" */

/* Returns where it ends. */
static char *put_integer(char *at, json_int_t number)
{
	char digits[INTEGER_MOST], *first = digits + sizeof(digits);
	unsigned long long left = number < 0 ? -(unsigned long long)number : (unsigned long long)number;

	for (; left >= 100; left /= 100)
		put_two_digits(first -= 2, left % 100);
	if (left >= 10)
		put_two_digits(first -= 2, left);
	else
		*--first = '0' + left;
	if (number < 0)
		*--first = '-';
	return mempcpy(at, first, digits + sizeof(digits) - first);
}

void compact_add_integer(struct compact *compact, json_int_t number)
{
	char digits[INTEGER_MOST];

	compact_add(compact, digits, put_integer(digits, number) - digits);
}

#define EACH(byte)	     (0x0101010101010101ULL * (byte))
#define HAS_LESS(word, byte) (((word)-EACH(byte)) & ~(word)&EACH(0x80)) /* byte <= 0x80 */

/* plain() of eight bytes. */
static bool plain_word(const char *text)
{
	unsigned long long word;

	memcpy(&word, text, sizeof(word));
	return !(HAS_LESS(word, 0x20) | HAS_LESS(word ^ EACH('"'), 1) | HAS_LESS(word ^ EACH('\\'), 1));
}

/* Whether JSON has the text as it is, between quotes. */
static bool plain(const char *text, size_t size)
{
	size_t i = 0;

	for (; i + 8 <= size; i += 8)
		if (!plain_word(text + i))
			return false;
	for (; i < size; i++)
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
	json_dump_callback(value, add_dumped, compact,
			   JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
}

/* With its quotes; UTF-8, as all of jansson's. */
static void add_string(struct compact *compact, const char *text, size_t size)
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

	json_object_foreach((json_t *)object, name, value)
	{
		compact_add(compact, separator, 1);
		separator = ",";
		add_string(compact, name, strlen(name));
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
		add_string(compact, json_string_value(value), json_string_length(value));
	else
		add_by_jansson(compact, value);
}

void compact_add_fields(struct compact *compact, const struct fields *fields)
{
	for (size_t i = 0; i < fields->nr; i++) {
		const struct field *field = &fields->list[i];
		bool whole = !field->value && (!field->text || plain(field->text, field->length));
		char *at = compact_reserve(compact, field->name_length + field->length + INTEGER_MOST +
							    strlen(",\"\":\"\""));

		*at++ = ',';
		*at++ = '"';
		at = mempcpy(at, field->name, field->name_length);
		*at++ = '"';
		*at++ = ':';
		if (whole && field->text) {
			*at++ = '"';
			at = mempcpy(at, field->text, field->length);
			*at++ = '"';
		} else if (whole) {
			at = put_integer(at, field->number);
		}
		compact->used = at - compact->text;
		if (field->value)
			compact_add_value(compact, field->value);
		else if (!whole)
			add_string(compact, field->text, field->length);
	}
}

size_t compact_bytes(const json_t *value)
{
	struct compact compact = {.measuring = true};

	compact_add_value(&compact, value);
	return compact.used;
}
