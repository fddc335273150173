// SPDX-License-Identifier: GPL-2.0-only
#include "record/compact.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/digits.h"

char *compact_grow(struct compact *compact, size_t size)
{
	compact->text = xfit(compact->text, compact->used + size, &compact->room, 1);
	return compact->text + compact->used;
}

void compact_add(struct compact *compact, const char *text, size_t size)
{
	if (size)
		memcpy(compact_reserve(compact, size), text, size);
	compact->used += size;
}

void compact_add_text(struct compact *compact, const char *text)
{
	compact_add(compact, text, strlen(text));
}

#define INTEGER_MOST 20 /* "-9223372036854775808" */

/* Writes a number. Returns the end of what was written. */
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
	compact->used = put_integer(compact_reserve(compact, INTEGER_MOST), number) - compact->text;
}

#define EACH(byte)	     (0x0101010101010101ULL * (byte))
#define HAS_LESS(word, byte) (((word)-EACH(byte)) & ~(word)&EACH(0x80)) /* byte <= 0x80 */

/* Whether none of eight bytes needs an escape in a JSON string. */
static inline bool is_plain(unsigned long long word)
{
	return !(HAS_LESS(word, 0x20) | HAS_LESS(word ^ EACH('"'), 1) | HAS_LESS(word ^ EACH('\\'), 1));
}

/* Copies eight bytes (copy_short(): fewer than eight, where the middle ones are copied twice). Returns
 * whether none of them needs an escape. */
static inline bool copy_word(char *to, const char *from)
{
	unsigned long long word;

	memcpy(&word, from, sizeof(word));
	memcpy(to, &word, sizeof(word));
	return is_plain(word);
}

static inline bool copy_short(char *to, const char *from, size_t size)
{
	unsigned long long word = EACH(' ');

	if (size >= 4) {
		memcpy(&word, from, 4);
		memcpy((char *)&word + 4, from + size - 4, 4);
		memcpy(to + size - 4, (char *)&word + 4, 4);
		memcpy(to, &word, 4);
		return is_plain(word);
	}
	for (size_t i = 0; i < size; i++)
		to[i] = ((char *)&word)[i] = from[i];
	return is_plain(word);
}

/* Copies a text. Returns whether none of its bytes needs an escape in a JSON string. */
static inline bool copy_plain(char *to, const char *from, size_t size)
{
	if (size < 8)
		return copy_short(to, from, size);
	for (size_t i = 0; i + 8 < size; i += 8)
		if (!copy_word(to + i, from + i))
			return false;
	return copy_word(to + size - 8, from + size - 8);
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

/* Adds a string with its quotes. The text is UTF-8, as in all of jansson's strings. */
static void add_string(struct compact *compact, const char *text, size_t size)
{
	char *at = compact_reserve(compact, size + strlen("\"\""));
	json_t *value;

	*at = '"';
	if (copy_plain(at + 1, text, size)) {
		at[1 + size] = '"';
		compact->used += size + 2;
		return;
	}
	value = json_stringn_nocheck(text, size);
	add_by_jansson(compact, value);
	json_decref(value);
}

void compact_add_member(struct compact *compact, char separator, const char *name, const json_t *value)
{
	*compact_reserve(compact, 1) = separator;
	compact->used++;
	add_string(compact, name, strlen(name));
	*compact_reserve(compact, 1) = ':';
	compact->used++;
	compact_add_value(compact, value);
}

static void add_object(struct compact *compact, json_t *object)
{
	char separator = '{';

	for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
		compact_add_member(compact, separator, json_object_iter_key(at), json_object_iter_value(at));
		separator = ',';
	}
	compact_add_text(compact, separator == '{' ? "{}" : "}");
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
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		add_object(compact, (json_t *)value);
		break;
	case JSON_ARRAY:
		add_array(compact, value);
		break;
	case JSON_INTEGER:
		compact_add_integer(compact, json_integer_value(value));
		break;
	case JSON_STRING:
		add_string(compact, json_string_value(value), json_string_length(value));
		break;
	default:
		add_by_jansson(compact, value);
	}
}

void compact_add_fields(struct compact *compact, const struct fields *fields)
{
	for (size_t i = 0; i < fields->nr; i++) {
		const struct field *field = &fields->list[i];
		char *at = compact_reserve(compact, field->name_length + INTEGER_MOST + strlen(",\"\":"));

		*at++ = ',';
		*at++ = '"';
		at = mempcpy(at, field->name, field->name_length);
		*at++ = '"';
		*at++ = ':';
		if (!field->value && !field->text)
			at = put_integer(at, field->number);
		compact->used = at - compact->text;
		if (field->value)
			compact_add_value(compact, field->value);
		else if (field->text)
			add_string(compact, field->text, field->length);
	}
}

size_t compact_bytes(const json_t *value)
{
	struct compact compact = {0};

	compact_add_value(&compact, value);
	free(compact.text);
	return compact.used;
}
