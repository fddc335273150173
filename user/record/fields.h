/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A record that is made often, as a list of its members. JSON is written directly from the list; only other
 * formats make a tree of it. To make and free a tree of fifteen members would be most of the cost of an
 * interval's record.
 */
#pragma once

#include <stdbool.h>
#include <string.h>
#include <jansson.h>
#include <linux/types.h>

#define FIELDS_MOST 40

enum field_kind {
	/* Those with a number: field_has_number(). */
	FIELD_NUMBER,
	FIELD_HEX,  /* a number as text, "0x1c0" */
	FIELD_TIME, /* ns since 1970, as text: "2026-01-31T23:59:59.123456789Z" */
	/* Others. */
	FIELD_TEXT,
	FIELD_VALUE,
	FIELD_RAW,	 /* compact JSON, as text */
	FIELD_HISTOGRAM, /* {lower bound, a power of two: number} */
};

struct field {
	const char *name; /* letters, underscores and dots only, so it needs no escapes */
	size_t name_length;
	enum field_kind kind;
	union {
		json_int_t number;
		const char *text;
		json_t *value;
		const __u64 *buckets; /* those that are 0 are left out */
	};
	size_t length; /* of a text in bytes, or the number of buckets */
	const char
		*compact; /* of a value: the same as compact JSON of `length` bytes; NULL: it is not known */
	bool borrowed;	  /* a value that the list has no reference to */
};

static inline bool field_has_number(const struct field *field)
{
	return field->kind <= FIELD_TIME;
}

/* Starts by fields_begin(). Texts, buckets and names are borrowed; the list owns references to the values but
 * for those that say otherwise. */
struct fields {
	size_t nr;
	size_t had;    /* so many names are those that the list had before */
	bool owns;     /* there may be a value that the list has a reference to */
	__u64 shape;   /* lists of the same shape, if it is not 0, have the same names in the same order */
	__u64 version; /* one more for each time that the list was begun again */
	__u64 changed; /* members that are not as they were in the version before: 1 << i */
	unsigned int every; /* how many samples the record of one stands for; 0: it is no such record, or 1.
			     * Of one that tells of missing samples: one more than these */
	struct field list[FIELDS_MOST];
};

/* Begins a list. What is behind its members needs no value: to zero 2 KiB takes longer than to fill most
 * lists. */
static inline void fields_begin(struct fields *fields)
{
	fields->nr = fields->had = 0;
	fields->owns = false;
	fields->shape = 0;
	fields->every = 0;
	fields->version = fields->changed = 0;
}

/* Begins a list that was zeros or the same list before, and mostly gets the same names, which must not go
 * meanwhile. It has a shape then; fields_shape() must follow the last one. */
static inline void fields_again(struct fields *fields)
{
	fields->nr = 0;
	fields->every = 0;
	fields->version++;
	fields->changed = 0;
}

/* Gives the last member another name. */
void fields_rename(struct fields *fields, size_t at, const char *name, size_t length);

/* Whether a member is the one that the list had there before: then it is as it was, until it is set. */
static inline bool fields_has(struct fields *fields, const char *name, struct field **field)
{
	size_t at = fields->nr++;

	*field = &fields->list[at];
	if (__builtin_expect(at < fields->had && (*field)->name == name, true))
		return true;
	fields_rename(fields, at, name, strlen(name)); /* of a literal, as most are, the compiler knows it */
	return false;
}

static inline void fields_change(struct fields *fields)
{
	fields->changed |= 1ULL << (fields->nr - 1);
}

static inline struct field *fields_add(struct fields *fields, const char *name)
{
	struct field *field;

	fields_has(fields, name, &field);
	fields_change(fields);
	return field;
}

/* Gives the list a new shape if it has other names than before. */
void fields_shape(struct fields *fields);

static inline void field_set_number(struct field *field, json_int_t number)
{
	field->kind = FIELD_NUMBER;
	field->number = number;
}

static inline void field_set_hex(struct field *field, __u64 number)
{
	field->kind = FIELD_HEX;
	field->number = number;
}

/* Bytes of the text that are not UTF-8 become U+FFFD. */
static inline void field_set_text(struct field *field, const char *text, size_t length)
{
	field->kind = FIELD_TEXT;
	field->text = text;
	field->length = length;
}

/* `text` ends with 0. */
static inline void field_set_string(struct field *field, const char *text)
{
	field_set_text(field, text, strlen(text));
}

static inline void field_set_histogram(struct field *field, const __u64 *buckets, size_t nr)
{
	field->kind = FIELD_HISTOGRAM;
	field->buckets = buckets;
	field->length = nr;
}

/* Takes over the reference. */
static inline void field_set_value(struct field *field, json_t *value)
{
	field->kind = FIELD_VALUE;
	field->value = value;
	field->compact = NULL;
	field->borrowed = false;
}

/* `kind`: one of those with a number. */
static inline void fields_plain(struct fields *fields, const char *name, enum field_kind kind,
				json_int_t number)
{
	struct field *field;

	if (fields_has(fields, name, &field) && field->kind == kind && field->number == number)
		return;
	fields_change(fields);
	field->kind = kind;
	field->number = number;
}

static inline void fields_number(struct fields *fields, const char *name, json_int_t number)
{
	fields_plain(fields, name, FIELD_NUMBER, number);
}

static inline void fields_hex(struct fields *fields, const char *name, __u64 number)
{
	fields_plain(fields, name, FIELD_HEX, number);
}

static inline void fields_time(struct fields *fields, const char *name, __u64 ns)
{
	fields_plain(fields, name, FIELD_TIME, ns);
}

static inline void fields_text(struct fields *fields, const char *name, const char *text, size_t length)
{
	field_set_text(fields_add(fields, name), text, length);
}

/* The same for a text that stays as it is: at this place there is no other one, as long as the list is. */
static inline void fields_constant(struct fields *fields, const char *name, const char *text, size_t length)
{
	struct field *field;

	if (fields_has(fields, name, &field) && field->kind == FIELD_TEXT && field->text == text)
		return;
	fields_change(fields);
	field_set_text(field, text, length);
}

/* The same for a text that ends with 0. If it is NULL no member is added. */
static inline void fields_string(struct fields *fields, const char *name, const char *text)
{
	if (text)
		fields_text(fields, name, text, strlen(text));
}

/* `text` is a value as compact JSON. */
static inline void fields_raw(struct fields *fields, const char *name, const char *text, size_t length)
{
	fields_text(fields, name, text, length);
	fields->list[fields->nr - 1].kind = FIELD_RAW;
}

/* Takes over the reference. If value is NULL no member is added. */
static inline void fields_value(struct fields *fields, const char *name, json_t *value)
{
	if (!value)
		return;
	field_set_value(fields_add(fields, name), value);
	fields->owns = true;
}

/* The same for a value that is written often, which is borrowed, as its text is: to count references takes as
 * long as to write one. `compact` may be NULL. Both stay as they are as long as the list has its shape. */
static inline void fields_known(struct fields *fields, const char *name, json_t *value, const char *compact,
				size_t length)
{
	struct field *field;

	if (fields_has(fields, name, &field) && field->kind == FIELD_VALUE && field->value == value &&
	    field->compact == compact)
		return;
	fields_change(fields);
	field_set_value(field, value);
	field->compact = compact;
	field->length = length;
	field->borrowed = true;
}

/* The field as a value, a new reference. */
json_t *field_json(const struct field *field);

/* Adds all members to a record. The list is not changed. */
void fields_put(const struct fields *fields, json_t *record);

/* Empties the list and releases its references. */
void fields_clear(struct fields *fields);
