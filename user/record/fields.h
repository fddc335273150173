/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A record that is made often, as a list of its members. JSON is written from the list directly, and only
 * other formats make a tree of it: making and freeing a tree of fifteen members would be most of the cost of
 * an interval's record.
 */
#ifndef NHMTAP_FIELDS_H
#define NHMTAP_FIELDS_H

#include <string.h>
#include <jansson.h>

#define FIELDS_MOST 28

struct field {
	const char *name; /* letters, underscores and dots */
	const char *text; /* NULL: it is the value, or if there is none the number */
	json_t *value;
	json_int_t number;
	size_t name_length, length; /* length: of the text, 0 if there is none */
};

/* Starts with nr 0. Texts are borrowed, values are the list's own. */
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

/* UTF-8. */
static inline void fields_text(struct fields *fields, const char *name, const char *text, size_t length)
{
	struct field *field = fields_add(fields, name);

	field->text = text;
	field->length = length;
}

/* A reference, which it takes; NULL: there is no such member. */
static inline void fields_value(struct fields *fields, const char *name, json_t *value)
{
	if (value)
		fields_add(fields, name)->value = value;
}

/* Puts all members into a record. The list stays as it is. */
void fields_put(const struct fields *fields, json_t *record);

/* Empties the list, and gives back the references that it has. */
void fields_clear(struct fields *fields);

#endif
