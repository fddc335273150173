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

static bool has_bytes(const struct alike_member *member, const char *text, const char *of, size_t length)
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
		return has_bytes(member, text, field->text, field->length);
	case FIELD_VALUE:
		return field->compact && has_bytes(member, text, field->compact, field->length);
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
static void append_to(struct alike_lines *alike, struct alike_member *member, size_t begun,
		      const struct field *field)
{
	alike->nr = member - alike->list + 1;
	alike->text.used = begun;
	compact_add_named(&alike->text, field);
	*member = (struct alike_member){
		.kind = field->kind,
		.name_length = field->name_length,
		.length = alike->text.used - begun - HEAD(field->name_length),
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

/* Whether the list has the names of the line before. If not, what comes behind it is not known either. */
static bool has_names(struct alike_lines *alike, __u64 shape)
{
	__u64 *known = &alike->shapes[alike->done.lists++];

	if (shape && *known == shape)
		return true;
	memset(known, 0, (ALIKE_LISTS - (known - alike->shapes)) * sizeof(*known));
	*known = shape;
	return false;
}

void alike_add(struct alike_lines *alike, const struct fields *fields)
{
	bool named = has_names(alike, fields->shape);
	struct alike_member *member = &alike->list[alike->done.nr];
	size_t bytes = alike->done.bytes;

	for (const struct field *field = fields->list, *end = field + fields->nr; field < end;
	     field++, member++) {
		const char *text = alike->text.text + bytes;

		if (member == alike->list + alike->nr || !(named || is_named(member, text, field)))
			append_to(alike, member, bytes, field);
		else if (!is_still(member, text + HEAD(member->name_length), field))
			replace_value(alike, member, bytes, field);
		bytes += HEAD(member->name_length) + member->length;
	}
	alike->done.nr = member - alike->list;
	alike->done.bytes = bytes;
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
