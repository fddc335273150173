// SPDX-License-Identifier: GPL-2.0-only
#include "tables/form.h"

#include <regex.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/embedded.h"
#include "base/memory.h"

struct pattern {
	const char *text; /* a string of the schema */
	regex_t regex;
	struct pattern *next;
};

struct form {
	json_t *schema;
	struct pattern *patterns; /* those compiled so far */
	int openings;
};

struct form *form_open(void)
{
	static struct form form;
	struct embedded file = embedded_find("schema.json");

	if (!form.openings++)
		form.schema = json_loadb(file.data, file.size, 0, NULL);
	return &form;
}

void form_close(struct form *form)
{
	struct pattern *pattern;

	if (--form->openings)
		return;
	while ((pattern = form->patterns)) {
		form->patterns = pattern->next;
		regfree(&pattern->regex);
		free(pattern);
	}
	json_decref(form->schema);
	form->schema = NULL;
}

/* The place in the table that is being checked. */
struct place {
	struct form *form;
	struct form_fault *fault;
	char label[128];
	char field[128]; /* "\"aliases\" " */
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct place *place, const char *what, ...)
{
	struct form_fault *fault = place->fault;
	size_t used = snprintf(fault->what, sizeof(fault->what), "%s", place->field);
	va_list args;

	snprintf(fault->label, sizeof(fault->label), "%s", place->label);
	va_start(args, what);
	vsnprintf(fault->what + used, sizeof(fault->what) - used, what, args);
	va_end(args);
	return -1;
}

static int look(struct place place, const json_t *schema, const json_t *value);

/* --- one value -------------------------------------------------------------------------------- */

static bool has_type(const char *type, const json_t *value)
{
	return !type || (!strcmp(type, "string") && json_is_string(value)) ||
	       (!strcmp(type, "integer") && json_is_integer(value)) ||
	       (!strcmp(type, "array") && json_is_array(value)) ||
	       (!strcmp(type, "object") && json_is_object(value));
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
static const struct pattern *compiled(struct form *form, const char *text)
{
	struct pattern *pattern = form->patterns;

	while (pattern && pattern->text != text)
		pattern = pattern->next;
	if (pattern)
		return pattern;
	pattern = xmalloc(sizeof(*pattern));
	*pattern = (struct pattern){.text = text, .next = form->patterns};
	if (regcomp(&pattern->regex, text, REG_EXTENDED | REG_NOSUB)) {
		free(pattern);
		return NULL;
	}
	return form->patterns = pattern;
}

/* The patterns use only what POSIX's regular expressions have. But '.' would match the end of a line, so text
 * with one never matches. */
static bool matches(struct form *form, const char *pattern, const char *text)
{
	const struct pattern *known = strchr(text, '\n') ? NULL : compiled(form, pattern);

	return known && !regexec(&known->regex, text, 0, NULL, 0);
}

static json_int_t characters(const char *text)
{
	json_int_t count = 0;

	for (; *text; text++)
		count += (*text & 0xc0) != 0x80;
	return count;
}

static bool within(const json_t *schema, const char *least, const char *most, json_int_t number)
{
	const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);

	return (!low || number >= json_integer_value(low)) && (!high || number <= json_integer_value(high));
}

/* Checks the value itself, without its members or elements. */
static bool is_right(struct form *form, const json_t *schema, const json_t *value)
{
	const json_t *constant = json_object_get(schema, "const");
	const json_t *list = json_object_get(schema, "enum");
	const char *pattern = json_string_value(json_object_get(schema, "pattern"));

	if (!has_type(json_string_value(json_object_get(schema, "type")), value) ||
	    (constant && !json_equal(constant, value)) || (list && !one_of(list, value)))
		return false;
	if (json_is_string(value))
		return (!pattern || matches(form, pattern, json_string_value(value))) &&
		       within(schema, NULL, "maxLength", characters(json_string_value(value)));
	return !json_is_integer(value) || within(schema, "minimum", "maximum", json_integer_value(value));
}

static int unexpected(const struct place *place, const json_t *schema, const json_t *value)
{
	const char *title = json_string_value(json_object_get(schema, "title"));
	const char *type = json_string_value(json_object_get(schema, "type"));
	const json_t *list = json_object_get(schema, "enum");
	char *shown = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY), expected[200] = "";
	size_t i, used = 0;
	json_t *item;
	int err;

	json_array_foreach(list, i, item)
		if (used < sizeof(expected))
			used += snprintf(expected + used, sizeof(expected) - used, "%s%s",
					 i ? ", " : "one of ", json_string_value(item));
	if (title)
		snprintf(expected, sizeof(expected), "%s", title);
	else if (json_object_get(schema, "minimum"))
		snprintf(expected, sizeof(expected),
			 "a number from %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT,
			 json_integer_value(json_object_get(schema, "minimum")),
			 json_integer_value(json_object_get(schema, "maximum")));
	else if (!used)
		snprintf(expected, sizeof(expected), "%s",
			 !type			  ? "something else"
			 : !strcmp(type, "array") ? "a list"
						  : "an object");
	err = wrong(place, "must be %s, not %.60s", expected, shown);
	free(shown);
	return err;
}

/* --- objects and lists ------------------------------------------------------------------------ */

static int unknown_field(const struct place *place, const char *key, const json_t *known)
{
	char names[200] = "";
	size_t used = 0;
	const char *name;
	json_t *ignored;

	json_object_foreach((json_t *)known, name, ignored)
		if (used < sizeof(names))
			used += snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", name);
	return wrong(place, "unknown field \"%.60s\"; known: %s", key, names);
}

static int look_at_member(struct place place, const json_t *schema, const char *key, const json_t *value)
{
	const json_t *known = json_object_get(schema, "properties");
	const json_t *rest = json_object_get(schema, "additionalProperties");
	const json_t *names = json_object_get(schema, "propertyNames");
	const json_t *own = json_object_get(known, key);
	struct place here = place;
	size_t used = strlen(here.field);

	if (!own && json_is_false(rest))
		return unknown_field(&place, key, known);
	snprintf(here.field + used, sizeof(here.field) - used, "\"%.60s\" ", key);
	if (names) {
		json_t *name = json_string(key);
		int err = look(here, names, name);

		json_decref(name);
		if (err)
			return err;
	}
	return own ? look(here, own, value) : rest ? look(here, rest, value) : 0;
}

/* "oneOf" is used only to require exactly one of two fields. */
static int look_at_choice(const struct place *place, const json_t *choices, const json_t *value)
{
	const char *names[2];

	for (size_t i = 0; i < 2; i++)
		names[i] = json_string_value(
			json_array_get(json_object_get(json_array_get(choices, i), "required"), 0));
	if (!json_object_get(value, names[0]) != !json_object_get(value, names[1]))
		return 0;
	return wrong(place, "needs either \"%s\" or \"%s\"", names[0], names[1]);
}

static int look_at_members(const struct place *place, const json_t *schema, const json_t *value)
{
	const json_t *choices = json_object_get(schema, "oneOf");
	const char *key;
	json_t *member;
	size_t i;

	json_object_foreach((json_t *)value, key, member)
		if (look_at_member(*place, schema, key, member))
			return -1;
	json_array_foreach(json_object_get(schema, "required"), i, member)
		if (!json_object_get(value, json_string_value(member)))
			return wrong(place, "\"%s\" is missing", json_string_value(member));
	json_object_foreach(json_object_get(schema, "dependentRequired"), key, member) {
		const char *other = json_string_value(json_array_get(member, 0));

		if (json_object_get(value, key) && !json_object_get(value, other))
			return wrong(place, "\"%s\" means nothing without \"%s\"", key, other);
	}
	if (choices && look_at_choice(place, choices, value))
		return -1;
	if (!within(schema, "minProperties", NULL, json_object_size(value)))
		return wrong(place, "is empty");
	return 0;
}

/* The value of the field that names an entry. */
static const char *name_of(const json_t *entry)
{
	static const char *const keys[] = {"name", "id", "key"};
	const char *name = NULL;

	for (size_t i = 0; !name && i < ARRAY_SIZE(keys); i++)
		name = json_string_value(json_object_get(entry, keys[i]));
	return name;
}

static bool has_twice(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		for (size_t j = 0; j < i; j++)
			if (json_equal(json_array_get(list, i), json_array_get(list, j)))
				return true;
	return false;
}

static int look_at_items(const struct place *place, const json_t *schema, const json_t *value)
{
	const json_t *items = json_object_get(schema, "items");
	size_t i;
	json_t *item;

	if (!within(schema, "minItems", NULL, json_array_size(value)))
		return wrong(place, "must have %d or more entries",
			     (int)json_integer_value(json_object_get(schema, "minItems")));
	if (json_is_true(json_object_get(schema, "uniqueItems")) && has_twice(value))
		return wrong(place, "has an entry twice");
	json_array_foreach(value, i, item) {
		struct place here = *place;
		const char *name = name_of(item);

		if (!items)
			continue;
		if (!json_is_object(item)) {
			size_t used = strlen(here.field);

			snprintf(here.field + used, sizeof(here.field) - used, "entry %zu ", i + 1);
		} else {
			if (name)
				snprintf(here.label, sizeof(here.label), "%.120s", name);
			else
				snprintf(here.label, sizeof(here.label), "%.90sentry %zu", here.field, i + 1);
			here.field[0] = '\0';
		}
		if (look(here, items, item))
			return -1;
	}
	return 0;
}

/* --- all -------------------------------------------------------------------------------------- */

static int look(struct place place, const json_t *schema, const json_t *value)
{
	const char *reference = json_string_value(json_object_get(schema, "$ref"));

	if (reference) { /* "#/$defs/KIND" */
		const json_t *all = json_object_get(place.form->schema, "$defs");

		if (look(place, json_object_get(all, strrchr(reference, '/') + 1), value))
			return -1;
	}
	if (!is_right(place.form, schema, value))
		return unexpected(&place, schema, value);
	if (json_is_object(value))
		return look_at_members(&place, schema, value);
	return json_is_array(value) ? look_at_items(&place, schema, value) : 0;
}

int form_check(struct form *form, const char *kind, const json_t *table, struct form_fault *fault)
{
	struct place place = {.form = form, .fault = fault};

	return look(place, json_object_get(json_object_get(form->schema, "$defs"), kind), table);
}
