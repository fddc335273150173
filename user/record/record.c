// SPDX-License-Identifier: GPL-2.0-only
#include "record/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/digits.h"

/* The number of bytes of the UTF-8 character at `at`; 0 if it is not a valid one (RFC 3629, section 4). */
static size_t character(const unsigned char *at, size_t left)
{
	size_t length = at[0] < 0x80   ? 1
			: at[0] < 0xc2 ? 0
			: at[0] < 0xe0 ? 2
			: at[0] < 0xf0 ? 3
			: at[0] < 0xf5 ? 4
				       : 0;

	if (!length || length > left)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

json_t *value_text(const char *text, size_t most)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t left = strnlen(text, most), used = 0;
	char *clean = xmalloc(3 * left + 1);
	json_t *value;

	while (left) {
		size_t length = character(at, left), step = length ? length : 1;

		memcpy(clean + used, length ? (const char *)at : "\xef\xbf\xbd", length ? length : 3);
		used += length ? length : 3;
		at += step;
		left -= step;
	}
	value = json_stringn_nocheck(clean, used);
	free(clean);
	return value;
}

json_t *value_hex(__u64 number)
{
	return json_sprintf("0x%llx", number);
}

/* Writes the time without its nanoseconds. */
static void put_second(char *buffer, time_t second)
{
	struct tm tm;

	gmtime_r(&second, &tm);
	memcpy(buffer, "0000-00-00T00:00:00.000000000Z", TIME_TEXT);
	put_two_digits(buffer, (tm.tm_year + 1900) / 100);
	put_two_digits(buffer + 2, (tm.tm_year + 1900) % 100);
	put_two_digits(buffer + 5, tm.tm_mon + 1);
	put_two_digits(buffer + 8, tm.tm_mday);
	put_two_digits(buffer + 11, tm.tm_hour);
	put_two_digits(buffer + 14, tm.tm_min);
	put_two_digits(buffer + 17, tm.tm_sec);
}

/* The texts of so many seconds are kept: those of now and of samples that were taken seconds ago alternate.
 */
#define SECONDS_KEPT 4

char *time_text(const struct timespec *time, char *buffer)
{
	static __thread struct {
		time_t second;
		char text[TIME_TEXT]; /* empty: none is kept */
	} kept[SECONDS_KEPT];
	typeof(&kept[0]) of = &kept[(unsigned long long)time->tv_sec % SECONDS_KEPT];

	if (of->second != time->tv_sec || !of->text[0])
		put_second(of->text, of->second = time->tv_sec);
	memcpy(buffer, of->text, TIME_TEXT);
	put_nine_digits(buffer + TIME_TEXT_NS, time->tv_nsec);
	return buffer;
}

json_t *value_time(const struct timespec *time)
{
	char text[TIME_TEXT];

	return json_stringn_nocheck(time_text(time, text), TIME_TEXT - 1);
}

json_t *value_bits(__u64 bits)
{
	json_t *list = json_array();

	for (; bits; bits &= bits - 1)
		json_array_append_new(list, json_integer(__builtin_ctzll(bits)));
	return list;
}

json_t *value_real(double number)
{
	return isfinite(number) ? json_real(number) : NULL;
}

void put_text(json_t *record, const char *name, const char *text)
{
	if (text)
		json_object_set_new(record, name, value_text(text, strlen(text)));
}

json_t *record_error(const struct refusal *refusal)
{
	json_t *record = json_pack("{s:s}", "type", "error");

	json_object_set_new(record, "asked", value_text(refusal->asked, sizeof(refusal->asked)));
	json_object_set_new(record, "why", value_text(refusal->why, sizeof(refusal->why)));
	if (refusal->remedy[0])
		json_object_set_new(record, "remedy", value_text(refusal->remedy, sizeof(refusal->remedy)));
	if (refusal->source[0])
		json_object_set_new(record, "source", value_text(refusal->source, sizeof(refusal->source)));
	if (refusal->column) {
		json_object_set_new(record, "input", value_text(refusal->input, sizeof(refusal->input)));
		json_object_set_new(record, "column", json_integer(refusal->column));
	}
	if (refusal->error)
		json_object_set_new(record, "errno", json_string(error_name(refusal->error)));
	json_object_set_new(record, "exit_status", json_integer(refusal->status));
	return record;
}
