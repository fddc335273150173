/* SPDX-License-Identifier: GPL-2.0-only */
/* Members of an aggregation's keys and values, as values of a record. How a member is written follows from
 * its type's name in BTF. */
#pragma once

#include <jansson.h>

#include "aggregation/aggregation.h"
#include "host/host.h"
#include "record/fields.h"

/* How members of a type are written: as a field of this kind, or as `set` says, if it is not NULL. Numbers of
 * cgroups, sources and the like get their names from the host. */
struct member_form {
	const char *type;
	enum field_kind kind;
	void (*set)(struct field *field, const struct host *host, const void *at);
};
const struct member_form *member_form(const struct member *member);

/* The number of FIELD_NUMBER and FIELD_HEX, which has 4 or 8 bytes. */
static inline __u64 plain_number(const void *at, size_t size)
{
	return size == sizeof(__u32) ? *(const __u32 *)at : *(const __u64 *)at;
}

/* The same as field_set_member() for the forms that are no plain number. */
void field_set_formed(struct field *field, const struct member_form *form, const struct host *host,
		      const void *at, size_t size);

/* Gives a field the value of a member, which is at `at` and has `size` bytes. A text stays where it is. */
static inline void field_set_member(struct field *field, const struct member_form *form,
				    const struct host *host, const void *at, size_t size)
{
	if (form->set || form->kind > FIELD_HEX) {
		field_set_formed(field, form, host, at, size);
		return;
	}
	field->kind = form->kind;
	field->number = plain_number(at, size);
}

/* Adds a member of this form, which is at `at` and has `size` bytes. */
static inline void add_formed(struct fields *fields, const char *name, const struct host *host,
			      const struct member_form *form, const void *at, size_t size)
{
	if (!form->set && form->kind <= FIELD_HEX) {
		fields_plain(fields, name, form->kind, plain_number(at, size));
		return;
	}
	field_set_formed(fields_add(fields, name), form, host, at, size);
	fields->owns |= !!form->set;
}

/* Adds a member of the key or value that begins at `base`. */
static inline void add_key_member(struct fields *fields, const struct host *host, const struct member *member,
				  const void *base)
{
	add_formed(fields, member->name, host, member_form(member), (const char *)base + member->offset,
		   member->size);
}

/* The same member as a value, a new reference. */
json_t *member_value(const struct host *host, const struct member *member, const void *base);

/* The number of the key's member of up to 8 bytes. */
static inline __u64 member_number(const struct member *member, const void *key)
{
	const char *at = (const char *)key + member->offset;
	__u64 number = 0;

	if (member->size == sizeof(__u32) || member->size == sizeof(__u64))
		return plain_number(at, member->size);
	/* Little endian: the lower bytes come first. */
	memcpy(&number, at, member->size);
	return number;
}

/* The comm in an entry's key, of 16 bytes; NULL if it is not one of this run's keys. */
const char *key_comm(const struct layout *layout, const void *key);
