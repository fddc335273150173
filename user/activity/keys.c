// SPDX-License-Identifier: GPL-2.0-only
#include "activity/keys.h"

#include <stdio.h>
#include <string.h>

#include "base/list.h"

const struct code_key ip_code_keys[] = {
	{"symbol", "ip,pid,comm", CODE_SYMBOL},
	{"line", "ip,pid,comm", CODE_LINE},
	{"module", "ip,pid,comm", CODE_MODULE},
	{"place", "ip,pid,comm", CODE_PLACE},
	{0},
};

const struct code_key data_code_keys[] = {
	{"symbol", "ip,pid,comm", CODE_SYMBOL},
	{"line", "ip,pid,comm", CODE_LINE},
	{"module", "ip,pid,comm", CODE_MODULE},
	{"place", "ip,pid,comm", CODE_PLACE},
	{"variable", "cacheline,offset,pid,comm", CODE_VARIABLE},
	{"variable_offset", "cacheline,offset,pid,comm", CODE_VARIABLE | CODE_VARIABLE_OFFSET},
	{"type", "ip,cacheline,offset,pid,comm", CODE_TYPE},
	{0},
};

const struct code_key stack_code_keys[] = {
	{"symbol", "stack", CODE_SYMBOL},
	{"line", "stack", CODE_LINE},
	{"module", "stack", CODE_MODULE},
	{"place", "stack", CODE_PLACE},
	{0},
};

static const struct code_key *find_key(const struct code_key *table, const char *name, size_t length)
{
	for (; table && table->name; table++)
		if (strlen(table->name) == length && !strncmp(table->name, name, length))
			return table;
	return NULL;
}

/* Adds a key, once. */
static void append_key(struct chosen_keys *chosen, const char *key, size_t length)
{
	size_t used = strlen(chosen->kernel);
	char name[sizeof(chosen->kernel)];

	snprintf(name, sizeof(name), "%.*s", (int)length, key);
	if (!list_has(chosen->kernel, name))
		snprintf(chosen->kernel + used, sizeof(chosen->kernel) - used, "%s%s", used ? "," : "", name);
}

static void append_all(struct chosen_keys *chosen, const char *keys)
{
	size_t length;

	for (const char *at = NULL; (at = list_next(keys, at, &length));)
		append_key(chosen, at, length);
}

void keys_choose(struct chosen_keys *chosen, const char *by, const struct code_key *table)
{
	size_t length;

	*chosen = (struct chosen_keys){.by = by, .table = table};
	for (const char *at = NULL; (at = list_next(by, at, &length));) {
		const struct code_key *key = find_key(table, at, length);

		chosen->detail |= key ? key->detail : 0;
		if (key)
			append_all(chosen, key->needs); /* nothing, if it needs no key */
		else
			append_key(chosen, at, length);
	}
}

void keys_need(struct chosen_keys *chosen, const char *name)
{
	append_key(chosen, name, strlen(name));
}

bool keys_asked(const struct chosen_keys *chosen, const char *name)
{
	return list_has(chosen->by, name);
}

#define CODE_KEYS_MOST 8

int keys_open(struct aggregation **aggregation, const char *name, const struct chosen_keys *chosen,
	      const struct host *host, size_t most, struct refusal *refusal)
{
	/* A stream's samples may have fields that are no keys alone. */
	const char *kernel = chosen->option && !chosen->kernel[0] ? NULL : chosen->kernel;
	const char *of_code[CODE_KEYS_MOST + 1] = {NULL};

	for (size_t i = 0; chosen->table && chosen->table[i].name && i < CODE_KEYS_MOST; i++)
		of_code[i] = chosen->table[i].name;
	if (aggregation_open(aggregation, name, kernel, of_code, host, most, refusal)) {
		if (refusal->status == STATUS_USAGE)
			snprintf(refusal->asked, sizeof(refusal->asked), "option %s '%s'",
				 chosen->option ?: "--by", chosen->by);
		return -1;
	}
	for (size_t i = 0; i < aggregation_layout(*aggregation)->nr_keys; i++) {
		const struct member *key = &aggregation_layout(*aggregation)->keys[i];

		if (key->optional && key->shown && !keys_asked(chosen, key->name))
			aggregation_conceal(*aggregation, key->name);
	}
	return 0;
}

json_t *keys_value(const struct chosen_keys *chosen, const struct layout *layout)
{
	json_t *by = json_array();
	size_t length;

	if (chosen->option) { /* in the order that was asked for: of samples, not of the table */
		for (const char *at = NULL; (at = list_next(chosen->by, at, &length));)
			json_array_append_new(by, json_stringn(at, length));
		return by;
	}
	for (const struct code_key *key = chosen->table; key && key->name; key++)
		if (keys_asked(chosen, key->name))
			json_array_append_new(by, json_string(key->name));
	for (size_t i = 0; i < layout->nr_by; i++)
		if (!chosen->detail || keys_asked(chosen, layout->by[i]))
			json_array_append_new(by, json_string(layout->by[i]));
	return by;
}
