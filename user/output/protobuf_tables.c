// SPDX-License-Identifier: GPL-2.0-only
#include "output/protobuf_tables.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef ProtobufCFieldDescriptor field_t;

/* A table of the message. */
struct table_of_items {
	void **items;
	size_t *nr;
	size_t size; /* number of items before any was taken out */
	bool texts;
	int64_t *ids; /* of each item; NULL: its place */
	bool *named;
	int64_t *numbers; /* what it is named by once the others are gone */
};

struct pruning {
	const struct protobuf_form *form;
	const ProtobufCMessage *dictionary;
	struct table_of_items *tables;
	bool numbering; /* names are being changed, otherwise followed */
	bool broken;	/* a number names nothing */
};

static void *member_at(const ProtobufCMessage *message, size_t offset)
{
	return (char *)message + offset;
}

static const field_t *field_of(const ProtobufCMessage *message, const char *name)
{
	return protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
}

static bool is_table(const struct pruning *pruning, const ProtobufCMessage *message, const field_t *field)
{
	for (size_t i = 0; i < pruning->form->nr_tables && message == pruning->dictionary; i++)
		if (!strcmp(field->name, pruning->form->tables[i].field))
			return true;
	return false;
}

static const struct protobuf_name *name_of(const struct pruning *pruning, const ProtobufCMessage *message,
					   const field_t *field)
{
	for (size_t i = 0; i < pruning->form->nr_names; i++) {
		const struct protobuf_name *name = &pruning->form->names[i];

		if (name->message == message->descriptor && !strcmp(name->field, field->name))
			return name;
	}
	return NULL;
}

static size_t place_of(const struct table_of_items *table, int64_t number)
{
	size_t place = number < 0 ? table->size : (size_t)number;

	/* Ids mostly are in their order, from 1 on. */
	if (!table->ids)
		return place;
	if (number > 0 && place <= table->size && table->ids[place - 1] == number)
		return place - 1;
	for (place = 0; place < table->size && table->ids[place] != number;)
		place++;
	return place;
}

static void walk_message(struct pruning *pruning, ProtobufCMessage *message);

static int64_t visit_number(struct pruning *pruning, struct table_of_items *table, int64_t number)
{
	size_t place = place_of(table, number);

	if (table->ids && !number)
		return 0; /* it names none */
	if (place >= table->size) {
		pruning->broken = true;
		return number;
	}
	if (pruning->numbering)
		return table->numbers[place];
	if (!table->named[place]) {
		table->named[place] = true;
		if (!table->texts)
			walk_message(pruning, table->items[place]);
	}
	return number;
}

static void visit_name(struct pruning *pruning, struct table_of_items *table, const field_t *field,
		       void *value, size_t i)
{
	if (field->type == PROTOBUF_C_TYPE_INT32)
		((int32_t *)value)[i] = visit_number(pruning, table, ((int32_t *)value)[i]);
	else
		((int64_t *)value)[i] = visit_number(pruning, table, ((int64_t *)value)[i]);
}

static void walk_field(struct pruning *pruning, ProtobufCMessage *message, const field_t *field)
{
	const struct protobuf_name *name = name_of(pruning, message, field);
	bool list = field->label == PROTOBUF_C_LABEL_REPEATED;
	void *value = member_at(message, field->offset);
	size_t nr = list ? *(size_t *)member_at(message, field->quantifier_offset) : 1;

	value = list ? *(void **)value : value;
	for (size_t i = 0; i < nr; i++) {
		if (name)
			visit_name(pruning, &pruning->tables[name->table], field, value, i);
		else if (field->type == PROTOBUF_C_TYPE_MESSAGE && ((ProtobufCMessage **)value)[i])
			walk_message(pruning, ((ProtobufCMessage **)value)[i]);
	}
}

/* Follows or changes the names in a message and in what it consists of, but for the tables. */
static void walk_message(struct pruning *pruning, ProtobufCMessage *message)
{
	for (unsigned int i = 0; i < message->descriptor->n_fields; i++) {
		const field_t *field = &message->descriptor->fields[i];

		if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && !is_table(pruning, message, field))
			walk_field(pruning, message, field);
	}
}

static void begin_table(struct table_of_items *table, const ProtobufCMessage *dictionary,
			const struct protobuf_table *form)
{
	const field_t *field = field_of(dictionary, form->field), *id;

	table->items = *(void ***)member_at(dictionary, field->offset);
	table->nr = member_at(dictionary, field->quantifier_offset);
	table->size = *table->nr;
	table->texts = field->type == PROTOBUF_C_TYPE_STRING;
	table->named = xcalloc(table->size + 1, sizeof(*table->named));
	table->numbers = xcalloc(table->size + 1, sizeof(*table->numbers));
	if (!form->ids)
		return;
	table->ids = xcalloc(table->size + 1, sizeof(*table->ids));
	for (size_t i = 0; i < table->size; i++) {
		id = field_of(table->items[i], "id");
		table->ids[i] = *(int64_t *)member_at(table->items[i], id->offset);
	}
}

/* The first item, and what it names. */
static void name_first(struct pruning *pruning, size_t i)
{
	struct table_of_items *table = &pruning->tables[i];

	if (pruning->form->tables[i].first && table->size)
		visit_number(pruning, table, table->ids ? table->ids[0] : 0);
}

static void drop_unnamed(struct table_of_items *table)
{
	size_t nr = 0;

	for (size_t i = 0; i < table->size; i++) {
		table->numbers[i] = table->ids ? table->ids[i] : (int64_t)nr;
		if (table->named[i])
			table->items[nr++] = table->items[i];
		else if (table->texts)
			free(table->items[i]);
		else
			protobuf_c_message_free_unpacked(table->items[i], NULL);
	}
	*table->nr = nr;
}

static void walk_items(struct pruning *pruning, const struct table_of_items *table)
{
	for (size_t i = 0; i < *table->nr && !table->texts; i++)
		walk_message(pruning, table->items[i]);
}

static void release_table(struct table_of_items *table)
{
	free(table->ids);
	free(table->named);
	free(table->numbers);
}

bool protobuf_prune(ProtobufCMessage *message, ProtobufCMessage *dictionary, const struct protobuf_form *form)
{
	struct pruning pruning = {.form = form,
				  .dictionary = dictionary,
				  .tables = xcalloc(form->nr_tables, sizeof(*pruning.tables))};

	for (size_t i = 0; i < form->nr_tables; i++)
		begin_table(&pruning.tables[i], dictionary, &form->tables[i]);
	for (size_t i = 0; i < form->nr_tables; i++)
		name_first(&pruning, i);
	walk_message(&pruning, message);
	if (!pruning.broken) {
		for (size_t i = 0; i < form->nr_tables; i++)
			drop_unnamed(&pruning.tables[i]);
		pruning.numbering = true;
		walk_message(&pruning, message);
		for (size_t i = 0; i < form->nr_tables; i++)
			walk_items(&pruning, &pruning.tables[i]);
	}
	for (size_t i = 0; i < form->nr_tables; i++)
		release_table(&pruning.tables[i]);
	free(pruning.tables);
	return !pruning.broken;
}
