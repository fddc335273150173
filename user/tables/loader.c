// SPDX-License-Identifier: GPL-2.0-only
#include "tables/loader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/copied.h"
#include "base/guarded.h"
#include "base/json_file.h"
#include "base/memory.h"
#include "tables/names.h"

int loader_fault(struct loader *loader, const char *file, const char *label, const char *what, ...)
{
	char text[400];
	va_list args;

	va_start(args, what);
	vsnprintf(text, sizeof(text), what, args);
	va_end(args);
	refuse(loader->refusal, STATUS_USAGE, "%.300s/%.100s%s%.100s", loader->folder, file,
	       *label ? ": " : "", label);
	return because(loader->refusal, "%s", text);
}

static const char *spelling(const char *name, char *buffer, size_t size)
{
	size_t i = 0;

	for (; name[i] && i + 1 < size; i++)
		buffer[i] = name_letter(name[i]);
	buffer[i] = '\0';
	return buffer;
}

void draft_note_file(struct loader *loader, struct draft *draft, const char *name)
{
	char key[200];

	json_object_set_new(draft->files, spelling(name, key, sizeof(key)), json_string(loader->file));
}

const char *draft_file_of(const struct draft *draft, const char *name)
{
	char key[200];
	const char *file = json_string_value(json_object_get(draft->files, spelling(name, key, sizeof(key))));

	return file ? file : draft->cpu.name;
}

bool draft_is_from_folder(const struct draft *draft, const char *name)
{
	return draft_file_of(draft, name) != draft->cpu.name;
}

/* --- reading ---------------------------------------------------------------------------------- */

const char *entry_text(const json_t *entry, const char *field)
{
	return json_string_value(json_object_get(entry, field));
}

json_int_t entry_number(const json_t *entry, const char *field, json_int_t otherwise)
{
	const json_t *value = json_object_get(entry, field);

	return value ? json_integer_value(value) : otherwise;
}

__u64 entry_hex(const json_t *entry, const char *field)
{
	const char *digits = entry_text(entry, field);

	return digits ? strtoull(digits, NULL, 16) : 0;
}

bool entry_flag(const json_t *entry, const char *field)
{
	return json_is_true(json_object_get(entry, field));
}

#define TABLE_MOST (16 << 20) /* bytes of a file; the largest built in has 18 KiB */

/* The value of the field that names an entry. */
static const char *entry_name(const json_t *entry)
{
	static const char *const keys[] = {"name", "id", "key"};
	const char *name = NULL;

	for (size_t i = 0; !name && i < ARRAY_SIZE(keys); i++)
		name = json_string_value(json_object_get(entry, keys[i]));
	return name;
}

/* A place in a table, as people say it. */
struct place_in_table {
	char label[128]; /* the entry's name, or "entry 3"; "": no entry */
	char field[128]; /* where it is in the entry: "\"aliases\" " */
};

/* Goes to an element of a list. Objects are entries: they have names. */
static void go_to_element(struct place_in_table *place, const json_t *element, const char *number)
{
	const char *name = entry_name(element);
	char in[128];

	snprintf(in, sizeof(in), "%.100sentry %llu", place->field, strtoull(number, NULL, 10) + 1);
	if (!json_is_object(element)) {
		snprintf(place->field, sizeof(place->field), "%.126s ", in);
		return;
	}
	snprintf(place->label, sizeof(place->label), "%.120s", name ? name : in);
	place->field[0] = '\0';
}

static void go_to(struct place_in_table *place, const json_t *table, const char *pointer)
{
	size_t used;
	char name[64];

	while (json_pointer_next(&pointer, name, sizeof(name))) {
		if (json_is_array(table)) {
			table = json_array_get(table, strtoull(name, NULL, 10));
			go_to_element(place, table, name);
			continue;
		}
		table = json_object_get(table, name);
		used = strlen(place->field);
		snprintf(place->field + used, sizeof(place->field) - used, "\"%.60s\" ", name);
	}
}

static void fault_of_schema(struct loader *loader, const json_t *table, const struct json_fault *fault)
{
	const bool near = fault->near[0], unknown = fault->kind == FAULT_UNKNOWN;
	const char *last = strrchr(fault->pointer, '/');
	char object[POINTER_MOST], member[64] = "";
	struct place_in_table at = {"", ""};

	snprintf(object, sizeof(object), "%.*s", unknown ? (int)(last - fault->pointer) : POINTER_MOST,
		 fault->pointer);
	go_to(&at, table, object);
	switch (fault->kind) {
	case FAULT_VALUE:
		FAULT(loader, at.label, "%smust be %s, not %s%s%s", at.field, fault->takes, fault->value,
		      near ? "; did you mean " : "", fault->near);
		break;
	case FAULT_UNKNOWN:
		json_pointer_next(&last, member, sizeof(member));
		FAULT(loader, at.label, "%sunknown field \"%s\"%s%s", at.field, member,
		      near ? "; did you mean " : "; known: ", near ? fault->near : fault->takes);
		break;
	case FAULT_MISSING:
		FAULT(loader, at.label, "%sis missing", at.field);
		break;
	case FAULT_OTHER:
		FAULT(loader, at.label, "%s%s", at.field, fault->takes);
	}
}

json_t *loader_read_table(struct loader *loader, const char *kind)
{
	char path[2 * PATH_MAX];
	struct json_fault found;
	json_error_t error;
	json_t *table;

	snprintf(path, sizeof(path), "%s/%s", loader->folder, loader->file);
	table = json_fd_read(copied_open(path, TABLE_MOST, COPIED_WAIT_NS), JSON_REJECT_DUPLICATES, &error);
	if (!table) {
		if (errno)
			FAULT(loader, "", "%s", guarded_why(errno));
		else if (json_error_code(&error) == json_error_duplicate_key) /* near '"NAME"' */
			FAULT(loader, "", "field %.*s stands twice in one object",
			      (int)strcspn(strchrnul(error.text, '"'), "'"), strchrnul(error.text, '"'));
		else if (error.line > 0)
			FAULT(loader, "", "line %d: %s", error.line, error.text);
		else
			FAULT(loader, "", "%s", error.text);
		return NULL;
	}
	json_array_append_new(loader->documents, table);
	if (!json_schema_check(loader->schema, kind, table, NULL, &found))
		return table;
	fault_of_schema(loader, table, &found);
	return NULL;
}

bool loader_has_file(struct loader *loader, const char *file)
{
	char path[2 * PATH_MAX];
	struct stat stat;

	snprintf(loader->file, sizeof(loader->file), "%s", file);
	snprintf(path, sizeof(path), "%s/%s", loader->folder, file);
	return !copied_stat(path, &stat, COPIED_WAIT_NS) || errno == ETIMEDOUT; /* reading it says so */
}

void *loader_keep(struct loader *loader, size_t nr, size_t size)
{
	return *xappend(loader->blocks, loader->nr_blocks) = xcalloc(nr + 1, size);
}

/* --- checks that every entry has to pass ------------------------------------------------------ */

static int check_source(struct loader *loader, const char *label, const char *source)
{
	char key[64];

	snprintf(key, sizeof(key), "%.*s",
		 (int)strspn(source, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"),
		 source);
	if (json_object_get(loader->sources, key))
		return 0;
	return FAULT(loader, label, "quotes \"%s\", which is no key of sources.json, here or built in", key);
}

int entry_check_sources(struct loader *loader, const char *label, const json_t *entry)
{
	static const char *const by_source[] = {"aliases", "says"};
	const char *source = entry_text(entry, "source"), *key;
	json_t *ignored;

	if (source && check_source(loader, label, source))
		return -1;
	for (size_t i = 0; i < 2; i++)
		json_object_foreach(json_object_get(entry, by_source[i]), key, ignored)
			if (check_source(loader, label, key))
				return -1;
	return 0;
}

int entries_check(struct loader *loader, const json_t *entries, const char *key)
{
	json_t *seen = json_object(), *entry;
	int err = 0;
	size_t i;

	json_array_foreach(entries, i, entry) {
		const char *name = entry_text(entry, key);
		char plain[200];

		if (err)
			break;
		if (json_object_get(seen, spelling(name, plain, sizeof(plain))))
			err = FAULT(loader, name, "stands twice");
		else
			err = entry_check_sources(loader, name, entry);
		json_object_set_new(seen, plain, json_true());
	}
	json_decref(seen);
	return err;
}

const struct cpu_events *loader_find_cpu(const struct loader *loader, const char *name)
{
	for (size_t i = 0; i < loader->nr_drafts; i++)
		if (!strcmp(loader->drafts[i]->cpu.name, name))
			return &loader->drafts[i]->cpu;
	for (size_t i = 0; i < nr_known_cpus; i++)
		if (!strcmp(known_cpus[i].name, name))
			return &known_cpus[i];
	return NULL;
}
