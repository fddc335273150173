// SPDX-License-Identifier: GPL-2.0-only
#include "base/json_schema.h"

#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/embedded.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/nearest.h"

struct pattern {
	const char *text; /* a string of the schema */
	regex_t regex;
	struct pattern *next;
};

struct json_schema {
	const char *file;
	json_t *document;
	struct pattern *patterns; /* those compiled so far */
	int openings;
	struct json_schema *next;
};

static struct json_schema *schemas;

struct json_schema *json_schema_open(const char *file)
{
	struct json_schema *schema = schemas;
	struct embedded text;

	while (schema && strcmp(schema->file, file))
		schema = schema->next;
	if (!schema) {
		text = embedded_find(file);
		schema = xcalloc(1, sizeof(*schema));
		*schema = (struct json_schema){.file = file, .next = schemas};
		schema->document = json_loadb(text.data, text.size, 0, NULL);
		schemas = schema;
	}
	schema->openings++;
	return schema;
}

void json_schema_close(struct json_schema *schema)
{
	struct json_schema **at = &schemas;
	struct pattern *pattern;

	if (--schema->openings)
		return;
	while ((pattern = schema->patterns)) {
		schema->patterns = pattern->next;
		regfree(&pattern->regex);
		free(pattern);
	}
	while (*at != schema)
		at = &(*at)->next;
	*at = schema->next;
	json_decref(schema->document);
	free(schema);
}

json_t *json_schema_document(struct json_schema *schema)
{
	return schema->document;
}

/* --- pointers --------------------------------------------------------------------------------- */

const char *json_pointer_below(char *buffer, size_t size, const char *pointer, const char *member)
{
	size_t used = snprintf(buffer, size, "%s/", pointer);

	for (; *member && used + 3 < size; member++) {
		bool escaped = *member == '~' || *member == '/';

		if (escaped)
			buffer[used++] = '~';
		buffer[used++] = !escaped ? *member : *member == '~' ? '0' : '1';
	}
	buffer[used < size ? used : size - 1] = '\0';
	return buffer;
}

bool json_pointer_next(const char **pointer, char *name, size_t size)
{
	const char *at = *pointer;
	size_t used = 0;

	if (*at != '/')
		return false;
	for (at++; *at && *at != '/'; at++) {
		bool escaped = *at == '~' && (at[1] == '0' || at[1] == '1');

		if (used + 1 < size)
			name[used++] = !escaped ? *at : at[1] == '0' ? '~' : '/';
		at += escaped;
	}
	name[used] = '\0';
	*pointer = at;
	return true;
}

/* --- faults ----------------------------------------------------------------------------------- */

/* The place that is being checked. */
struct checked_spot {
	struct json_schema *schema;
	struct json_fault *fault;
	const json_t *passed;
	const struct checked_spot *up; /* NULL: the whole */
	const char *member;	       /* of `up`; NULL: an element */
	size_t element;
};

static void write_pointer(const struct checked_spot *spot, char *pointer)
{
	char above[POINTER_MOST], number[24];

	if (!spot->up) {
		*pointer = '\0';
		return;
	}
	write_pointer(spot->up, above);
	snprintf(number, sizeof(number), "%zu", spot->element);
	json_pointer_below(pointer, POINTER_MOST, above, spot->member ? spot->member : number);
}

/* Returns NULL if the fault is passed over. */
static struct json_fault *begin_fault(const struct checked_spot *spot, enum json_fault_kind kind)
{
	*spot->fault = (struct json_fault){.kind = kind};
	write_pointer(spot, spot->fault->pointer);
	return json_object_get(spot->passed, spot->fault->pointer) ? NULL : spot->fault;
}

__attribute__((format(printf, 2, 3))) static int say_wrong(const struct checked_spot *spot, const char *what,
							   ...)
{
	struct json_fault *fault = begin_fault(spot, FAULT_OTHER);
	va_list args;

	if (!fault)
		return 0;
	va_start(args, what);
	vsnprintf(fault->takes, sizeof(fault->takes), what, args);
	va_end(args);
	return -1;
}

static struct checked_spot member_of(const struct checked_spot *spot, const char *member)
{
	return (struct checked_spot){spot->schema, spot->fault, spot->passed, spot, member, 0};
}

static int check_value(const struct checked_spot *spot, const json_t *part, const json_t *value);

/* --- one value -------------------------------------------------------------------------------- */

static const struct type {
	const char *name;
	json_type type, other;
	const char *words;
} types[] = {
	{"integer", JSON_INTEGER, JSON_INTEGER, "a whole number"},
	{"boolean", JSON_TRUE, JSON_FALSE, "true or false"},
	{"string", JSON_STRING, JSON_STRING, "a text"},
	{"array", JSON_ARRAY, JSON_ARRAY, "a list"},
	{"object", JSON_OBJECT, JSON_OBJECT, "an object"},
};

static const struct type *type_of(const json_t *part)
{
	const char *name = json_string_value(json_object_get(part, "type"));

	for (size_t i = 0; name && i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, name))
			return &types[i];
	return NULL;
}

static bool has_type(const json_t *part, const json_t *value)
{
	const struct type *type = type_of(part);

	return !type || json_typeof(value) == type->type || json_typeof(value) == type->other;
}

static bool one_of(const json_t *list, const json_t *value)
{
	size_t i;
	json_t *item;

	json_array_foreach(list, i, item)
		if (json_equal(item, value))
			return true;
	return false;
}

/* Returns the compiled pattern, which is kept: compiling takes longer than matching. NULL: it is not a
 * regular expression. */
static const struct pattern *compiled(struct json_schema *schema, const char *text)
{
	struct pattern *pattern = schema->patterns;

	while (pattern && pattern->text != text)
		pattern = pattern->next;
	if (pattern)
		return pattern;
	pattern = xmalloc(sizeof(*pattern));
	*pattern = (struct pattern){.text = text, .next = schema->patterns};
	if (regcomp(&pattern->regex, text, REG_EXTENDED | REG_NOSUB)) {
		free(pattern);
		return NULL;
	}
	return schema->patterns = pattern;
}

/* The patterns use only what POSIX's regular expressions have. But '.' would match the end of a line, so text
 * with one never matches. */
static bool matches_pattern(struct json_schema *schema, const char *pattern, const char *text)
{
	const struct pattern *known = strchr(text, '\n') ? NULL : compiled(schema, pattern);

	return known && !regexec(&known->regex, text, 0, NULL, 0);
}

static json_int_t characters(const char *text)
{
	json_int_t count = 0;

	for (; *text; text++)
		count += (*text & 0xc0) != 0x80;
	return count;
}

static bool is_within_limits(const json_t *schema, const char *least, const char *most, json_int_t number)
{
	const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);

	return (!low || number >= json_integer_value(low)) && (!high || number <= json_integer_value(high));
}

/* Checks the value itself, without its members or elements. */
static bool is_right(struct json_schema *schema, const json_t *part, const json_t *value)
{
	const json_t *constant = json_object_get(part, "const");
	const json_t *list = json_object_get(part, "enum"), *not = json_object_get(part, "not");
	const char *pattern = json_string_value(json_object_get(part, "pattern"));

	if (!has_type(part, value) || (constant && !json_equal(constant, value)) ||
	    (list && !one_of(list, value)) || (not &&is_right(schema, not, value)))
		return false;
	if (json_is_string(value))
		return (!pattern || matches_pattern(schema, pattern, json_string_value(value))) &&
		       is_within_limits(part, NULL, "maxLength", characters(json_string_value(value)));
	if (json_is_array(value))
		return is_within_limits(part, "minItems", "maxItems", json_array_size(value));
	return !json_is_integer(value) ||
	       is_within_limits(part, "minimum", "maximum", json_integer_value(value));
}

/* The definition of a reference, "#/$defs/KIND". */
static const json_t *resolve_reference(const struct checked_spot *spot, const char *reference)
{
	const json_t *all = json_object_get(spot->schema->document, "$defs");

	return json_object_get(all, strrchr(reference, '/') + 1);
}

/* Appends bounds: "1 to 31", or "1" and `open`. Returns whether there are any. */
static bool put_bounds(char *text, size_t size, const json_t *part, const char *least, const char *most,
		       const char *open)
{
	const json_t *low = json_object_get(part, least), *high = json_object_get(part, most);

	if (low && high)
		snprintf(text, size, "%lld to %lld", json_integer_value(low), json_integer_value(high));
	else if (low)
		snprintf(text, size, "%lld %s", json_integer_value(low), open);
	return low;
}

/* Says what a value has to be. The title of the whole is its name. */
static void put_takes(const struct checked_spot *spot, const json_t *part)
{
	const char *reference = json_string_value(json_object_get(part, "$ref"));
	const char *title = spot->up ? json_string_value(json_object_get(part, "title")) : NULL;
	const struct type *type = type_of(part);
	char *text = spot->fault->takes, list[200] = "";
	const size_t size = sizeof(spot->fault->takes);
	size_t i;
	json_t *item;

	json_array_foreach(json_object_get(part, "enum"), i, item)
		list_append(list, sizeof(list), json_string_value(item));
	if (title)
		snprintf(text, size, "%s", title);
	else if (reference)
		put_takes(spot, resolve_reference(spot, reference));
	else if (list[0])
		snprintf(text, size, "one of %s", list);
	else if (put_bounds(list, sizeof(list), part, "minimum", "maximum", "on"))
		snprintf(text, size, "a number from %s", list);
	else if (put_bounds(list, sizeof(list), part, "minItems", "maxItems", "or more"))
		snprintf(text, size, "a list of %s entries", list);
	else
		snprintf(text, size, "%s", type ? type->words : "something else");
}

static int report_unexpected(const struct checked_spot *spot, const json_t *part, const json_t *value)
{
	struct json_fault *fault = begin_fault(spot, FAULT_VALUE);
	struct nearest nearest;
	json_t *item;
	char *shown;
	size_t i;

	if (!fault)
		return 0;
	put_takes(spot, part);
	shown = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	snprintf(fault->value, sizeof(fault->value), "%.60s", shown);
	free(shown);
	if (!json_is_string(value))
		return -1;
	nearest_begin(&nearest, json_string_value(value), 3);
	json_array_foreach(json_object_get(part, "enum"), i, item)
		nearest_offer(&nearest, json_string_value(item));
	nearest_print(&nearest, fault->near, sizeof(fault->near));
	return -1;
}

/* --- objects and lists ------------------------------------------------------------------------ */

static int unknown_member(const struct checked_spot *spot, const json_t *known)
{
	struct json_fault *fault = begin_fault(spot, FAULT_UNKNOWN);
	struct nearest nearest;
	const char *name;
	json_t *ignored;

	if (!fault)
		return 0;
	nearest_begin(&nearest, spot->member, 3);
	json_object_foreach((json_t *)known, name, ignored) {
		list_append(fault->takes, sizeof(fault->takes), name);
		nearest_offer(&nearest, name);
	}
	nearest_print(&nearest, fault->near, sizeof(fault->near));
	return -1;
}

static int look_at_member(const struct checked_spot *object, const json_t *part, const char *key,
			  const json_t *value)
{
	const json_t *known = json_object_get(part, "properties");
	const json_t *rest = json_object_get(part, "additionalProperties");
	const json_t *names = json_object_get(part, "propertyNames");
	const json_t *own = json_object_get(known, key);
	const struct checked_spot spot = member_of(object, key);

	if (!own && json_is_false(rest))
		return unknown_member(&spot, known);
	if (names) {
		json_t *name = json_string(key);
		int err = check_value(&spot, names, name);

		json_decref(name);
		if (err)
			return err;
	}
	return own ? check_value(&spot, own, value) : rest ? check_value(&spot, rest, value) : 0;
}

static int missing_member(const struct checked_spot *object, const json_t *part, const char *key)
{
	const struct checked_spot spot = member_of(object, key);

	if (!begin_fault(&spot, FAULT_MISSING))
		return 0;
	put_takes(&spot, json_object_get(json_object_get(part, "properties"), key));
	return -1;
}

/* "oneOf" is used only to require exactly one of two fields. */
static int look_at_choice(const struct checked_spot *spot, const json_t *choices, const json_t *value)
{
	const char *names[2];

	for (size_t i = 0; i < 2; i++)
		names[i] = json_string_value(
			json_array_get(json_object_get(json_array_get(choices, i), "required"), 0));
	if (!json_object_get(value, names[0]) != !json_object_get(value, names[1]))
		return 0;
	return say_wrong(spot, "needs either \"%s\" or \"%s\"", names[0], names[1]);
}

static int look_at_members(const struct checked_spot *spot, const json_t *part, const json_t *value)
{
	const json_t *choices = json_object_get(part, "oneOf");
	const char *key;
	json_t *member;
	size_t i;

	json_object_foreach((json_t *)value, key, member)
		if (look_at_member(spot, part, key, member))
			return -1;
	json_array_foreach(json_object_get(part, "required"), i, member)
		if (!json_object_get(value, json_string_value(member)) &&
		    missing_member(spot, part, json_string_value(member)))
			return -1;
	json_object_foreach(json_object_get(part, "dependentRequired"), key, member) {
		const char *other = json_string_value(json_array_get(member, 0));

		if (json_object_get(value, key) && !json_object_get(value, other) &&
		    say_wrong(spot, "\"%s\" means nothing without \"%s\"", key, other))
			return -1;
	}
	if (choices && look_at_choice(spot, choices, value))
		return -1;
	if (!is_within_limits(part, "minProperties", NULL, json_object_size(value)))
		return say_wrong(spot, "is empty");
	return 0;
}

static bool has_twice(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		for (size_t j = 0; j < i; j++)
			if (json_equal(json_array_get(list, i), json_array_get(list, j)))
				return true;
	return false;
}

static int look_at_items(const struct checked_spot *spot, const json_t *part, const json_t *value)
{
	const json_t *items = json_object_get(part, "items");
	size_t i;
	json_t *item;

	if (json_is_true(json_object_get(part, "uniqueItems")) && has_twice(value) &&
	    say_wrong(spot, "has an entry twice"))
		return -1;
	if (!items)
		return 0;
	json_array_foreach(value, i, item)
		if (check_value(
			    &(struct checked_spot){spot->schema, spot->fault, spot->passed, spot, NULL, i},
			    items, item))
			return -1;
	return 0;
}

/* --- all -------------------------------------------------------------------------------------- */

static int check_value(const struct checked_spot *spot, const json_t *part, const json_t *value)
{
	const char *reference = json_string_value(json_object_get(part, "$ref"));

	if (reference && check_value(spot, resolve_reference(spot, reference), value))
		return -1;
	if (!is_right(spot->schema, part, value))
		return report_unexpected(spot, part, value);
	if (json_is_object(value))
		return look_at_members(spot, part, value);
	return json_is_array(value) ? look_at_items(spot, part, value) : 0;
}

int json_schema_check(struct json_schema *schema, const char *definition, const json_t *value,
		      const json_t *passed, struct json_fault *fault)
{
	const json_t *all = json_object_get(schema->document, "$defs");
	const struct checked_spot whole = {.schema = schema, .fault = fault, .passed = passed};

	return check_value(&whole, definition ? json_object_get(all, definition) : schema->document, value);
}
