/* SPDX-License-Identifier: GPL-2.0-only */
/* Access to members of a record, with a default for those that are missing. */
#pragma once

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <jansson.h>
#include <linux/types.h>

/* The text of a member, borrowed; "" if there is none. */
static inline const char *string(const json_t *record, const char *name)
{
	const char *value = json_string_value(json_object_get(record, name));

	return value ? value : "";
}

/* The integer of a member; 0 if there is none. */
static inline json_int_t integer(const json_t *record, const char *name)
{
	return json_integer_value(json_object_get(record, name));
}

/* The number of a member as a real one; `missing` if there is none. */
static inline double real_member(const json_t *record, const char *name, double missing)
{
	const json_t *member = json_object_get(record, name);

	return member ? json_number_value(member) : missing;
}

/* A sum that stays at the highest number where it would exceed it: records of others may have any numbers. */
static inline json_int_t count_sum(json_int_t one, json_int_t other)
{
	json_int_t sum;

	return __builtin_add_overflow(one, other, &sum) ? (one < 0 ? LLONG_MIN : LLONG_MAX) : sum;
}

/* Whether a list of texts has this one. */
static inline bool has_text(const json_t *texts, const char *wanted)
{
	json_t *text;
	size_t i;

	json_array_foreach(texts, i, text)
		if (json_is_string(text) && !strcmp(json_string_value(text), wanted))
			return true;
	return false;
}

/* The object of this name in a list of objects; NULL if there is none. Borrowed. */
static inline json_t *object_named(const json_t *list, const char *name)
{
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (!strcmp(string(one, "name"), name))
			return one;
	return NULL;
}

/* The number of a member that is hexadecimal text, "0x1f"; 0 if there is none. */
static inline __u64 hex_member(const json_t *record, const char *name)
{
	return strtoull(string(record, name), NULL, 16);
}

/* The time of a member, "2026-01-31T23:59:59.123456789Z", in ns since 1970; 0 if there is none. */
static inline __u64 moment(const json_t *record, const char *name)
{
	struct tm tm = {0};
	const char *rest = strptime(string(record, name), "%Y-%m-%dT%H:%M:%S", &tm);

	return rest ? timegm(&tm) * 1000000000ULL + (*rest == '.' ? llround(strtod(rest, NULL) * 1e9) : 0)
		    : 0;
}

/* The emulated machine that a start record is from, an object; NULL: none, its numbers are silicon's. */
static inline const json_t *emulated_host(const json_t *start)
{
	return json_object_get(json_object_get(start, "host"), "emulated");
}

/* The program of the command that was measured, from a start record. NULL if there was none, or if it only
 * said for how long other processes are measured. */
static inline const char *measured_program(const json_t *start)
{
	const json_t *target = json_object_get(start, "target");

	if (json_object_get(target, "pids") || json_object_get(target, "tids"))
		return NULL;
	return json_string_value(json_array_get(json_object_get(target, "process.command_args"), 0));
}
