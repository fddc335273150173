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

/* Whether the member's value is the field's. A text that has no more bytes as JSON than its quotes is in the
 * line as it is. */
static inline bool is_still(const struct alike_member *member, const char *line, const struct field *field)
{
	const char *value = line + member->at;

	if (member->kind != field->kind)
		return false;
	if (field_has_number(field))
		return member->plain == (__u64)field->number;
	switch (field->kind) {
	case FIELD_TEXT:
		return member->plain == field->length && member->length == field->length + strlen("\"\"") &&
		       is_same(value + 1, field->text, field->length);
	case FIELD_RAW:
		return has_bytes(member, value, field->text, field->length);
	case FIELD_VALUE:
		return field->compact && has_bytes(member, value, field->compact, field->length);
	default:
		return false;
	}
}

static bool is_named(const struct alike_member *member, const char *line, const struct field *field)
{
	return member->name_length == field->name_length &&
	       is_same(line + member->at - strlen("\":") - field->name_length, field->name,
		       field->name_length);
}

/* What comes behind goes: it has other members. */
static void append_to(struct alike_lines *alike, struct alike_member *member, const struct field *field)
{
	size_t nr = member - alike->list;
	size_t at = alike_bytes(alike, nr) + HEAD(field->name_length);

	alike->text.used = at - HEAD(field->name_length);
	compact_add_named(&alike->text, field);
	*member = (struct alike_member){
		.kind = field->kind,
		.name_length = field->name_length,
		.at = at,
		.length = alike->text.used - at,
		.plain = plain_of(field),
	};
	alike->nr = nr + 1;
}

/* Gives the member `more` bytes for its value, or takes them. */
static void stretch(struct alike_lines *alike, size_t nr, ptrdiff_t more)
{
	struct compact *text = &alike->text;
	size_t behind = alike_bytes(alike, nr + 1);

	compact_reserve(text, more > 0 ? more : 0);
	memmove(text->text + behind + more, text->text + behind, text->used - behind);
	text->used += more;
	alike->list[nr].length += more;
	for (size_t i = nr + 1; i < alike->nr; i++)
		alike->list[i].at += more;
}

/* Gives the member another value. Most have as many bytes as the one before. */
static void replace_value(struct alike_lines *alike, struct alike_member *member, const struct field *field)
{
	struct compact *value = &alike->value;
	__u64 before = member->kind == field->kind ? member->plain : ~0ULL;

	member->kind = field->kind;
	member->plain = plain_of(field);
	if (compact_overwrite(alike->text.text + member->at, member->length, before, field))
		return;
	value->used = 0;
	compact_add_field(value, field);
	if (value->used != member->length)
		stretch(alike, member - alike->list, value->used - member->length);
	memcpy(alike->text.text + member->at, value->text, value->used);
}

/* Whether the list has the names of the line before. If not, what comes behind it is not known either. */
static bool has_names(struct alike_lines *alike, const struct alike_list *known, const struct fields *fields)
{
	return fields->shape && known->shape == fields->shape && alike->done.nr + fields->nr <= alike->nr;
}

static void add_all(struct alike_lines *alike, const struct fields *fields, bool named)
{
	struct alike_member *member = &alike->list[alike->done.nr];

	for (const struct field *field = fields->list, *end = field + fields->nr; field < end;
	     field++, member++)
		if (!named &&
		    (member == alike->list + alike->nr || !is_named(member, alike->text.text, field)))
			append_to(alike, member, field);
		else if (!is_still(member, alike->text.text, field))
			replace_value(alike, member, field);
}

/* The line before has the version before. */
static void add_changed(struct alike_lines *alike, const struct fields *fields)
{
	struct alike_member *first = &alike->list[alike->done.nr];

	for (__u64 left = fields->changed; left; left &= left - 1) {
		unsigned int i = __builtin_ctzll(left);

		if (!is_still(first + i, alike->text.text, &fields->list[i]))
			replace_value(alike, first + i, &fields->list[i]);
	}
}

void alike_add(struct alike_lines *alike, const struct fields *fields)
{
	struct alike_list *known = &alike->lists[alike->done.lists++];
	bool named = has_names(alike, known, fields);

	if (named && known->version + 1 == fields->version)
		add_changed(alike, fields);
	else
		add_all(alike, fields, named);
	if (!named)
		memset(known, 0, (ALIKE_LISTS - (known - alike->lists)) * sizeof(*known));
	*known = (struct alike_list){fields->shape, fields->version};
	alike->done.nr += fields->nr;
}

size_t alike_end(struct alike_lines *alike)
{
	struct compact *text = &alike->text;

	alike->nr = alike->done.nr;
	text->used = alike_bytes(alike, alike->nr);
	memcpy(compact_reserve(text, strlen("}\n")), "}\n", strlen("}\n"));
	text->text[0] = '{';
	return text->used + strlen("}\n");
}
