// SPDX-License-Identifier: GPL-2.0-only
#include "record/shorter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/visible.h"
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
	char *half = xasprintf("%.*s…", (int)whole_characters(all, json_string_length(text) / 2), all);

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

/* The list with the most bytes that has more than one element; NULL: there is none. */
static struct field *longest_list(struct fields *fields)
{
	struct field *longest = NULL;
	size_t most = 0;

	for (size_t i = 0; i < fields->nr; i++) {
		struct field *field = &fields->list[i];
		size_t bytes;

		if (field->kind != FIELD_VALUE || json_array_size(field->value) < 2)
			continue;
		bytes = compact_bytes(field->value);
		if (bytes > most) {
			most = bytes;
			longest = field;
		}
	}
	return longest;
}

static bool has_field(const struct fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->nr; i++)
		if (!strcmp(fields->list[i].name, name))
			return true;
	return false;
}

#define TRUNCATED ",\"truncated\":true"

struct fields fields_shorter(const struct fields *fields, size_t excess)
{
	struct fields shorter = *fields;
	struct field *field;

	/* Other outputs write the same lists in full. */
	for (size_t i = 0; i < shorter.nr; i++)
		if (shorter.list[i].kind == FIELD_VALUE)
			field_set_value(&shorter.list[i], json_copy(shorter.list[i].value));
	shorter.owns = true;
	shorter.shape = 0;
	if (!has_field(&shorter, "truncated") && longest_list(&shorter)) {
		fields_value(&shorter, "truncated", json_true());
		excess += strlen(TRUNCATED);
	}
	while (excess && (field = longest_list(&shorter))) {
		size_t last = json_array_size(field->value) - 1;
		size_t bytes = compact_bytes(json_array_get(field->value, last)) + strlen(",");

		json_array_remove(field->value, last);
		excess -= bytes < excess ? bytes : excess;
	}
	return shorter;
}
