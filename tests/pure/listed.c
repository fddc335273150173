// SPDX-License-Identifier: GPL-2.0-only
/* Reads lists of fields, one per line, and prints each as compact_add_fields() does, then as the object that
 * fields_put() makes: as jansson writes it, and as struct alike_lines does after the line before. A field is
 * a kind, a space and its value: "hex 1c0"; the bytes of a text are in hex. Fields are separated by commas.
 * At the end all lists are printed as the elements of one list, from text, and from what rows_open() makes of
 * it. */
#include <stdio.h>
#include <stdlib.h>

#include "record/alike.h"
#include "record/compact.h"
#include "record/rows.h"

#define FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))

struct storage {
	char text[FIELDS_MOST][512];
	__u64 buckets[FIELDS_MOST][64];
};

static size_t read_bytes(const char *hex, char *bytes)
{
	size_t nr = 0;
	unsigned int byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		bytes[nr++] = byte;
	bytes[nr] = 0;
	return nr;
}

static void read_field(struct fields *fields, struct storage *storage, const char *kind, char *value)
{
	static const char *const names[] = {"a", "bc", "def", "samples", "a_name_of_27_bytes_and_dots"};
	static const char *const of_hex[] = {"x", "yz", "xyz", "address", "an_address_of_27_bytes_dots"};
	const char *name = (strcmp(kind, "hex") ? names : of_hex)[fields->nr % 5];
	char *text = storage->text[fields->nr], *left;
	__u64 *buckets = storage->buckets[fields->nr];

	if (!strcmp(kind, "number"))
		fields_number(fields, name, strtoll(value, NULL, 10));
	else if (!strcmp(kind, "hex"))
		fields_hex(fields, name, strtoull(value, NULL, 16));
	else if (!strcmp(kind, "time"))
		fields_time(fields, name, strtoull(value, NULL, 10));
	else if (!strcmp(kind, "text"))
		fields_text(fields, name, text, read_bytes(value, text));
	else if (!strcmp(kind, "raw"))
		fields_raw(fields, name, value, strlen(value));
	else if (!strcmp(kind, "value"))
		fields_value(fields, name, json_loads(value, JSON_DECODE_ANY, NULL));
	else {
		memset(buckets, 0, sizeof(storage->buckets[0]));
		for (char *bucket = strtok_r(value, "/", &left); bucket; bucket = strtok_r(NULL, "/", &left))
			buckets[atoi(bucket)] = 1 + 1000 * atoi(bucket);
		field_set_histogram(fields_add(fields, name), buckets, 64);
	}
}

static void print_object(const struct fields *fields)
{
	json_t *object = json_object();
	char *text;

	fields_put(fields, object);
	text = json_dumps(object, FLAGS);
	printf("%s\n", text);
	free(text);
	json_decref(object);
}

/* The line is made of two lists, as those of samples are. */
static void print_alike(struct alike_lines *alike, const struct fields *fields)
{
	static struct fields halves[2];
	int size;

	alike_begin(alike);
	for (size_t i = 0, at = 0; i < 2; i++) {
		fields_again(&halves[i]);
		for (; at < (i ? fields->nr : fields->nr / 2); at++) {
			const struct field *field = &fields->list[at];

			if (field_has_number(field))
				fields_plain(&halves[i], field->name, field->kind, field->number);
			else
				*fields_add(&halves[i], field->name) = *field;
		}
		fields_shape(&halves[i]);
		alike_add(alike, &halves[i]);
	}
	size = fields->nr ? alike_end(alike) : 0;
	printf("%.*s", size ? size : 3, size ? alike->text.text : "{}\n");
}

/* Whether a list is written behind one that has become shorter, where another member with the same value was
 * before. */
static bool moves_up(void)
{
	struct fields first = {0}, second = {0};
	static const char line[] = "{\"a\":3,\"c\":3}\n";
	struct alike_lines alike = {0};
	bool same = false;

	for (int nr = 2; nr; nr--) {
		fields_again(&first);
		fields_again(&second);
		for (int i = 0; i < nr; i++)
			fields_number(&first, i ? "b" : "a", 3);
		fields_number(&second, "c", 3);
		fields_shape(&first);
		fields_shape(&second);
		alike_begin(&alike);
		alike_add(&alike, &first);
		alike_add(&alike, &second);
		alike_end(&alike);
		same = !strncmp(alike.text.text, line, strlen(line));
	}
	alike_release(&alike);
	return same;
}

int main(void)
{
	struct alike_lines alike = {0};
	struct rows rows = {0};
	struct rows_text stored;
	json_t *record = json_object();
	static struct storage storage;
	char *line = NULL, *all;
	size_t room = 0, at = 0;

	if (!moves_up())
		return 1;
	while (getline(&line, &room, stdin) > 0) {
		struct fields fields = {.nr = 0};

		line[strcspn(line, "\n")] = 0;
		for (char *field = strtok(line, ","); field; field = strtok(NULL, ",")) {
			char *space = strchr(field, ' ');

			*space = 0;
			read_field(&fields, &storage, field, space + 1);
		}
		compact_add_fields(rows_begin(&rows), &fields);
		rows_end(&rows);
		printf("%.*s\n", (int)rows.sizes[rows.nr - 1], rows.text.text + at);
		at += rows.sizes[rows.nr - 1] + 1;
		print_object(&fields);
		print_alike(&alike, &fields);
		fields_clear(&fields);
	}
	rows_put(&rows, record, "list");
	if (!rows_text(json_object_get(record, "list"), &stored))
		return 1;
	printf("[%.*s]\n", (int)stored.size, stored.text);
	rows_open(record, "list");
	rows_open(record, "list");
	all = json_dumps(json_object_get(record, "list"), FLAGS);
	printf("%s\n", all);
	free(all);
	free(line);
	alike_release(&alike);
	json_decref(record);
	return 0;
}
