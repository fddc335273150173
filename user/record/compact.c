// SPDX-License-Identifier: GPL-2.0-only
#include "record/compact.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "record/digits.h"
#include "record/record.h"

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

void compact_add_integer(struct compact *compact, json_int_t number)
{
	compact->used = put_number(compact_reserve(compact, NUMBER_ROOM), number) - compact->text;
}

#define EACH(byte)	     (0x0101010101010101ULL * (byte))
#define HAS_LESS(word, byte) (((word)-EACH(byte)) & ~(word)&EACH(0x80)) /* byte <= 0x80 */

/* In UTF-8 no byte is refused for its highest bit, in a text of any bytes each one that has it. */
#define OF_UTF8 0
#define OF_ANY	EACH(0x80)

/* Whether none of eight bytes needs an escape in a JSON string, or has a bit that is refused. */
static inline bool is_plain(unsigned long long word, unsigned long long refused)
{
	return !(HAS_LESS(word, 0x20) | HAS_LESS(word ^ EACH('"'), 1) | HAS_LESS(word ^ EACH('\\'), 1) |
		 (word & refused));
}

/* Copies eight bytes (copy_short(): fewer than eight, where the middle ones are copied twice). Returns
 * whether all of them are plain. */
static inline bool copy_word(char *to, const char *from, unsigned long long refused)
{
	unsigned long long word;

	memcpy(&word, from, sizeof(word));
	memcpy(to, &word, sizeof(word));
	return is_plain(word, refused);
}

static inline bool copy_short(char *to, const char *from, size_t size, unsigned long long refused)
{
	unsigned long long word = EACH(' ');

	if (size >= 4) {
		memcpy(&word, from, 4);
		memcpy((char *)&word + 4, from + size - 4, 4);
		memcpy(to + size - 4, (char *)&word + 4, 4);
		memcpy(to, &word, 4);
		return is_plain(word, refused);
	}
	for (size_t i = 0; i < size; i++)
		to[i] = ((char *)&word)[i] = from[i];
	return is_plain(word, refused);
}

/* Copies a text. Returns whether all of its bytes are plain. */
static inline bool copy_plain(char *to, const char *from, size_t size, unsigned long long refused)
{
	if (size < 8)
		return copy_short(to, from, size, refused);
	for (size_t i = 0; i + 8 < size; i += 8)
		if (!copy_word(to + i, from + i, refused))
			return false;
	return copy_word(to + size - 8, from + size - 8, refused);
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

static void add_owned(struct compact *compact, json_t *value)
{
	add_by_jansson(compact, value);
	json_decref(value);
}

/* Adds a string with its quotes, if all of it is plain. Returns whether it is. */
static inline bool add_plain(struct compact *compact, const char *text, size_t size,
			     unsigned long long refused)
{
	char *at = compact_reserve(compact, size + strlen("\"\""));

	*at = '"';
	if (!copy_plain(at + 1, text, size, refused))
		return false;
	at[1 + size] = '"';
	compact->used += size + 2;
	return true;
}

/* Adds a string with its quotes. The text is UTF-8, as in all of jansson's strings. */
static void add_string(struct compact *compact, const char *text, size_t size)
{
	if (!add_plain(compact, text, size, OF_UTF8))
		add_owned(compact, json_stringn_nocheck(text, size));
}

/* Adds a string of any bytes. */
static void add_text(struct compact *compact, const char *text, size_t size)
{
	if (!add_plain(compact, text, size, OF_ANY))
		add_owned(compact, value_text(text, size));
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

/* Most buckets are 0. */
static size_t next_bucket(const struct field *field, size_t i)
{
	const __u64 *at = field->buckets;

	while (i + 4 <= field->length && !(at[i] | at[i + 1] | at[i + 2] | at[i + 3]))
		i += 4;
	while (i < field->length && !at[i])
		i++;
	return i;
}

static void add_histogram(struct compact *compact, const struct field *field)
{
	char separator = '{';

	for (size_t i = 0; (i = next_bucket(field, i)) < field->length; i++) {
		compact_add(compact, separator == '{' ? "{\"" : ",\"", 2);
		compact->used =
			put_unsigned(compact_reserve(compact, NUMBER_ROOM), 1ULL << i) - compact->text;
		compact_add(compact, "\":", 2);
		compact_add_integer(compact, field->buckets[i]);
		separator = ',';
	}
	compact_add_text(compact, separator == '{' ? "{}" : "}");
}

/* The bytes of a time with its quotes. */
#define TIME_BYTES (TIME_TEXT - 1 + strlen("\"\""))

static char *put_time(char *at, __u64 ns)
{
	struct timespec time = timespec_of(ns);

	*at = '"';
	time_text(&time, at + 1);
	at[TIME_BYTES - 1] = '"';
	return at + TIME_BYTES;
}

/* How many bytes a field of the kinds that have a number takes; 0: of another kind, or a negative number. */
static size_t bytes_of_number(const struct field *field)
{
	switch (field->kind) {
	case FIELD_NUMBER:
		return field->number < 0 ? 0 : decimal_digits(field->number);
	case FIELD_HEX:
		return hex_digits(field->number) + strlen("\"0x\"");
	case FIELD_TIME:
		return TIME_BYTES;
	default:
		return 0;
	}
}

static char *put_field(char *at, const struct field *field)
{
	return field->kind == FIELD_TIME  ? put_time(at, field->number)
	       : field->kind == FIELD_HEX ? put_hex(at, field->number)
					  : put_number(at, field->number);
}

/* Most times are of the second of the one before, and have other digits behind it. */
static bool overwrite_time(char *at, __u64 before, __u64 ns)
{
	struct timespec time = timespec_of(ns);

	if (time.tv_sec != timespec_of(before).tv_sec)
		return false;
	put_nine_digits(at + strlen("\"") + TIME_TEXT_NS, time.tv_nsec);
	return true;
}

/* Records are numbered. */
static bool overwrite_count(char *last, __u64 before, json_int_t number)
{
	if (number <= 0 || before + 1 != (__u64)number || *last == '9')
		return false;
	++*last;
	return true;
}

bool compact_overwrite(char *at, size_t size, __u64 before, const struct field *field)
{
	if (field->kind == FIELD_NUMBER && overwrite_count(at + size - 1, before, field->number))
		return true;
	if (field->kind == FIELD_TIME && size == TIME_BYTES && overwrite_time(at, before, field->number))
		return true;
	if (size != bytes_of_number(field))
		return false;
	put_field(at, field);
	return true;
}

void compact_add_field(struct compact *compact, const struct field *field)
{
	switch (field->kind) {
	case FIELD_NUMBER:
	case FIELD_HEX:
	case FIELD_TIME:
		compact->used = put_field(compact_reserve(compact, TIME_BYTES), field) - compact->text;
		break;
	case FIELD_TEXT:
		add_text(compact, field->text, field->length);
		break;
	case FIELD_RAW:
		compact_add(compact, field->text, field->length);
		break;
	case FIELD_VALUE:
		if (field->compact)
			compact_add(compact, field->compact, field->length);
		else
			compact_add_value(compact, field->value);
		break;
	case FIELD_HISTOGRAM:
		add_histogram(compact, field);
		break;
	}
}

static inline __attribute__((always_inline)) void add_named(struct compact *compact,
							    const struct field *field)
{
	char *at = compact_reserve(compact, field->name_length + strlen(",\"\":"));

	*at++ = ',';
	*at++ = '"';
	at = mempcpy(at, field->name, field->name_length);
	*at++ = '"';
	*at++ = ':';
	compact->used = at - compact->text;
	compact_add_field(compact, field);
}

void compact_add_named(struct compact *compact, const struct field *field)
{
	add_named(compact, field);
}

void compact_add_fields(struct compact *compact, const struct fields *fields)
{
	for (size_t i = 0; i < fields->nr; i++)
		add_named(compact, &fields->list[i]);
}

size_t compact_bytes(const json_t *value)
{
	struct compact compact = {0};

	compact_add_value(&compact, value);
	free(compact.text);
	return compact.used;
}
