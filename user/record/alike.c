// SPDX-License-Identifier: GPL-2.0-only
#include "record/alike.h"

#include <stdlib.h>
#include <string.h>

#include "base/same.h"

#define HEAD(length) ((length) + strlen(",\"\":")) /* bytes of a member before its value */

void alike_release(struct alike_lines *alike)
{
	free(alike->text.text);
	free(alike->value.text);
	*alike = (struct alike_lines){0};
}

/* What of a field tells, with the bytes of its value, whether it has changed. */
static __u64 plain_of(const struct field *field)
{
	return field->kind == FIELD_TEXT ? field->length : (__u64)field->number;
}

static bool has_text(const struct alike_member *member, const char *text, const char *of, size_t length)
{
	return member->length == length && is_same(text, of, length);
}

/* Whether the member's value, which is at `text`, is the field's. A text that has no more bytes as JSON than
 * its quotes is in there as it is. */
static bool is_still(const struct alike_member *member, const char *text, const struct field *field)
{
	if (member->kind != field->kind)
		return false;
	switch (field->kind) {
	case FIELD_NUMBER:
	case FIELD_HEX:
	case FIELD_TIME:
		return member->plain == (__u64)field->number;
	case FIELD_TEXT:
		return member->plain == field->length && member->length == field->length + strlen("\"\"") &&
		       is_same(text + 1, field->text, field->length);
	case FIELD_RAW:
		return has_text(member, text, field->text, field->length);
	case FIELD_VALUE:
		return field->compact && has_text(member, text, field->compact, field->length);
	default:
		return false;
	}
}

static bool is_named(const struct alike_member *member, const char *text, const struct field *field)
{
	return member->name_length == field->name_length &&
	       is_same(text + strlen(",\""), field->name, field->name_length);
}

/* What comes behind goes: it has other members. */
static void append(struct alike_lines *alike, const struct field *field)
{
	struct alike_member *member = &alike->list[alike->done.nr];

	alike->nr = alike->done.nr + 1;
	alike->text.used = alike->done.bytes;
	compact_add_named(&alike->text, field);
	*member = (struct alike_member){
		.kind = field->kind,
		.name_length = field->name_length,
		.length = alike->text.used - alike->done.bytes - HEAD(field->name_length),
		.plain = plain_of(field),
	};
}

/* Gives the member that begins at `begun` another value. */
static void replace_value(struct alike_lines *alike, struct alike_member *member, size_t begun,
			  const struct field *field)
{
	size_t at = begun + HEAD(member->name_length), behind = at + member->length;
	struct compact *text = &alike->text, *value = &alike->value;

	value->used = 0;
	compact_add_field(value, field);
	if (value->used != member->length) {
		compact_reserve(text, value->used);
		memmove(text->text + at + value->used, text->text + behind, text->used - behind);
		text->used += value->used - member->length;
	}
	memcpy(text->text + at, value->text, value->used);
	member->kind = field->kind;
	member->length = value->used;
	member->plain = plain_of(field);
}

void alike_add(struct alike_lines *alike, const struct fields *fields)
{
	for (size_t i = 0; i < fields->nr; i++) {
		const struct field *field = &fields->list[i];
		struct alike_member *member = &alike->list[alike->done.nr];
		const char *text = alike->text.text + alike->done.bytes;

		if (alike->done.nr == alike->nr || !is_named(member, text, field))
			append(alike, field);
		else if (!is_still(member, text + HEAD(member->name_length), field))
			replace_value(alike, member, alike->done.bytes, field);
		alike->done.bytes += HEAD(member->name_length) + member->length;
		alike->done.nr++;
	}
}

size_t alike_end(struct alike_lines *alike)
{
	struct compact *text = &alike->text;

	alike->nr = alike->done.nr;
	text->used = alike->done.bytes;
	memcpy(compact_reserve(text, strlen("}\n")), "}\n", strlen("}\n"));
	text->text[0] = '{';
	return text->used + strlen("}\n");
}
