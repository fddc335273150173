/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A record that is made often, as a list of its members. JSON is written directly from the list; only other
 * formats make a tree of it. To make and free a tree of fifteen members would be most of the cost of an
 * interval's record.
 */
#ifndef NHMTAP_FIELDS_H
#define NHMTAP_FIELDS_H

#include <string.h>
#include <jansson.h>

#define FIELDS_MOST 40

struct field {
	const char *name; /* letters, underscores and dots only, so it needs no escapes */
	const char *text; /* NULL: the member is `value` or, if that is NULL as well, `number` */
	json_t *value;
	json_int_t number;
	size_t name_length, length; /* length of the text, 0 if it is NULL */
};

/* Starts with nr 0. Texts and names are borrowed; the list owns references to the values. */
struct fields {
	size_t nr;
	struct field list[FIELDS_MOST];
};

static inline struct field *fields_add(struct fields *fields, const char *name)
{
	struct field *field = &fields->list[fields->nr++];

	field->name = name;
	field->name_length = strlen(name);
	field->text = NULL;
	field->value = NULL;
	field->length = 0;
	return field;
}

static inline void fields_number(struct fields *fields, const char *name, json_int_t number)
{
	fields_add(fields, name)->number = number;
}

/* `text` is UTF-8, of `length` bytes. */
static inline void fields_text(struct fields *fields, const char *name, const char *text, size_t length)
{
	struct field *field = fields_add(fields, name);

	field->text = text;
	field->length = length;
}

/* Takes over the reference. If value is NULL no member is added. */
static inline void fields_value(struct fields *fields, const char *name, json_t *value)
{
	if (value)
		fields_add(fields, name)->value = value;
}

/* Adds all members to a record. The list is not changed. */
void fields_put(const struct fields *fields, json_t *record);

/* Empties the list and releases its references. */
void fields_clear(struct fields *fields);

#endif
