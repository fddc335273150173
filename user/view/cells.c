// SPDX-License-Identifier: GPL-2.0-only
#include "view/cells.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "output/member.h"
#include "output/rows.h"

bool cell_has_line(const json_t *code)
{
	return json_object_get(code, "line") && !json_object_get(code, "offset");
}

/* The function that code is in. As in profile's own tables, it is the one that a line is in, which may be
 * inlined, or without lines the one that the linker knows. */
static struct call function_of(const json_t *code)
{
	return calls_at(code, cell_has_line(code) ? 0 : calls_in(code) - 1);
}

struct call cell_function(const json_t *entry)
{
	const json_t *code = json_object_get(entry, "code");

	if (!json_is_object(code))
		code = json_object_get(entry, "from");
	if (!json_is_object(code))
		return (struct call){0};
	return function_of(code);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Two builds of one program have different names, which would keep them apart. */
static const char *renamed(const struct cell_source *cells, const char *name)
{
	return cells->shown_as && !strcmp(base_name(name), cells->program) ? cells->shown_as : name;
}

static void symbol_text(const struct cell_source *cells, const struct call *call, char *buffer, size_t size)
{
	calls_name(call, buffer, size);
}

static void module_text(const struct cell_source *cells, const struct call *call, char *buffer, size_t size)
{
	snprintf(buffer, size, "%s", renamed(cells, string(call->frame, "module")));
}

/* Without stacks, the function is not the innermost one, but the line is: a line of an inlined function tells
 * more than that of its call. */
static void line_text(const struct cell_source *cells, const struct call *call, char *buffer, size_t size)
{
	struct call at = cells->call ? *call : calls_at(call->frame, 0);

	if (at.file)
		snprintf(buffer, size, "%s:%lld", base_name(at.file), (long long)at.line);
	else
		snprintf(buffer, size, "?");
}

static void place_text(const struct cell_source *cells, const struct call *call, char *buffer, size_t size)
{
	const char *offset = string(call->frame, "offset"), *module = string(call->frame, "module");

	snprintf(buffer, size, "%s%s%s", base_name(module), *module ? "+" : "",
		 *offset ? offset : string(call->frame, "address"));
}

static void code_text(const struct cell_source *cells, const struct call *call, char *buffer, size_t size)
{
	const char *module = string(call->frame, "module");
	size_t used;

	calls_name(call, buffer, size);
	used = strlen(buffer);
	if (call->symbol && *module && used < size)
		snprintf(buffer + used, size - used, " (%s)", base_name(renamed(cells, module)));
}

/* The keys that follow from the function. */
static const struct {
	const char *name;
	void (*text)(const struct cell_source *cells, const struct call *call, char *buffer, size_t size);
} of_function[] = {
	{"symbol", symbol_text}, {"module", module_text}, {"line", line_text},
	{"place", place_text},	 {"code", code_text},
};

/* A member that is code is written as the function's key `code`, with its line if it was recorded by lines.
 */
static void member_text(const struct cell_source *cells, const json_t *value, char *buffer, size_t size)
{
	struct cell_source own = *cells;
	struct call call;
	size_t used;

	if (!json_is_object(value)) {
		row_cell(value, buffer, size);
		return;
	}
	call = function_of(value);
	code_text(cells, &call, buffer, size);
	used = strlen(buffer);
	if (!cell_has_line(value) || used + 1 >= size)
		return;
	own.call = NULL;
	buffer[used] = ' ';
	line_text(&own, &call, buffer + used + 1, size - used - 1);
}

const char *cell_text(const struct cell_source *cells, const char *key, char *buffer, size_t size)
{
	struct call own = cells->call ? *cells->call : cell_function(cells->entry);
	const json_t *value;

	for (size_t i = 0; i < ARRAY_SIZE(of_function); i++) {
		if (strcmp(of_function[i].name, key))
			continue;
		if (!own.frame)
			return NULL;
		of_function[i].text(cells, &own, buffer, size);
		return buffer;
	}
	value = json_object_get(!strcmp(key, "event") ? cells->record : cells->entry, key);
	if (!value || json_is_array(value))
		return NULL;
	member_text(cells, value, buffer, size);
	if (!strcmp(key, "comm") && cells->shown_as && !strcmp(buffer, cells->program))
		snprintf(buffer, size, "%s", cells->shown_as);
	return buffer;
}

void cell_symbol(char *name, size_t size, const char *key, const char *text)
{
	size_t length = strlen(text), at = length;
	const char *end;

	while (at && strncmp(text + at, " (", 2))
		at--;
	end = strchr(text + at, ')');
	if (at && strcmp(key, "symbol") && end && (!end[1] || end[1] == ' ')) /* a line may follow */
		length = at;
	snprintf(name, size, "%.*s", (int)length, text);
}

void cell_keys(const struct cell_source *cells, json_t *names)
{
	bool function = cells->call || cell_function(cells->entry).frame;
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)cells->entry, name, value)
		if (row_is_key(name) && !json_is_array(value))
			json_object_set_new(names, name, json_true());
	for (size_t i = 0; function && i < ARRAY_SIZE(of_function); i++)
		json_object_set_new(names, of_function[i].name, json_true());
	json_object_set_new(names, "event", json_true());
}
