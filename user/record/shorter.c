// SPDX-License-Identifier: GPL-2.0-only
#include "record/shorter.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "record/compact.h"

#define LEAST 16 /* a text that has no more bytes is not cut */

/* The text with the most bytes as JSON, in which a control character has six; NULL: there is none to cut. */
static json_t *longest_text(json_t *value, size_t *bytes)
{
	json_t *longest = NULL, *inner;
	const char *name;
	size_t i;

	if (json_is_string(value) && json_string_length(value) > LEAST && compact_bytes(value) > *bytes) {
		*bytes = compact_bytes(value);
		return value;
	}
	json_object_foreach(value, name, inner)
		longest = longest_text(inner, bytes) ?: longest;
	json_array_foreach(value, i, inner)
		longest = longest_text(inner, bytes) ?: longest;
	return longest;
}

static void cut_in_half(json_t *text)
{
	const char *all = json_string_value(text);
	size_t length = json_string_length(text) / 2;
	char *half;

	while (length && (all[length] & 0xc0) == 0x80) /* within a character */
		length--;
	half = xasprintf("%.*s…", (int)length, all);
	json_string_set(text, half);
	free(half);
}

json_t *value_shorter(const json_t *value, size_t most)
{
	json_t *shorter = json_deep_copy(value), *text;
	size_t none;

	while (compact_bytes(shorter) > most && (none = 0, text = longest_text(shorter, &none)))
		cut_in_half(text);
	return shorter;
}
