/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages that keep what several of their parts share in tables, and name an item by its number. If parts
 * are taken out of a message, items are left that nothing names any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

struct protobuf_table {
	const char *field; /* of the message that has the tables: a list of messages or texts */
	bool ids;	   /* an item is named by its field "id", otherwise by its place in the table */
	bool first;	   /* the first item stays in any case */
};

/* A field that names an item, or is a list of such names. */
struct protobuf_name {
	const ProtobufCMessageDescriptor *message;
	const char *field;
	size_t table; /* index of the table */
};

struct protobuf_form {
	const struct protobuf_table *tables;
	size_t nr_tables;
	const struct protobuf_name *names;
	size_t nr_names;
};

/* Takes out of the tables in `dictionary` what nothing in `message` names, directly or by another item, and
 * numbers what stays anew where it is named by its place. Returns
 * false if a number names nothing; the message is then as it was. Both may be the same message. */
bool protobuf_prune(ProtobufCMessage *message, ProtobufCMessage *dictionary,
		    const struct protobuf_form *form);
