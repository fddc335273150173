// SPDX-License-Identifier: GPL-2.0-only
#include "output/calls.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/visible.h"

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

void calls_define(struct calls *calls, const json_t *frames)
{
	json_t *list = json_object_get(frames, "frames");

	if (json_integer_value(json_object_get(frames, "part")) > 1 && calls->defined) {
		json_array_extend(json_object_get(calls->defined, "frames"), list);
		return;
	}
	calls_release(calls);
	calls->defined = json_object();
	json_object_set_new(calls->defined, "frames", json_copy(list));
}

void calls_release(struct calls *calls)
{
	json_decref(calls->defined);
	calls->defined = NULL;
}

const json_t *calls_frame(const struct calls *calls, json_int_t id)
{
	const json_t *frames = json_object_get(calls->defined, "frames");

	return id < 0 ? NULL : json_array_get(frames, id);
}

size_t calls_in(const json_t *frame)
{
	return json_array_size(json_object_get(frame, "inlined")) + 1;
}

struct call calls_at(const json_t *frame, size_t i)
{
	const json_t *list = json_object_get(frame, "inlined"), *inlined = json_array_get(list, i);
	/* An inlined function's caller is at the place of the call. The innermost function is at the place of
	 * the CPU. */
	const json_t *inner = i ? json_array_get(list, i - 1) : NULL;

	return (struct call){
		.frame = frame,
		.symbol = text_of(inlined ? inlined : frame, "symbol"),
		.linkage = text_of(inlined ? inlined : frame, "linkage_name"),
		.file = inner ? text_of(inner, "call_file") : text_of(frame, "file"),
		.line = json_integer_value(
			json_object_get(inner ? inner : frame, inner ? "call_line" : "line")),
		.inlined = inlined,
	};
}

bool calls_of_kernel(const json_t *frame)
{
	static const char *const of_users[] = {"[vdso]", "[vdso32]", "[vdsox32]", "[anon]", "[unknown]"};
	const char *address = text_of(frame, "address"), *module = text_of(frame, "module");

	/* The kernel's addresses are in the upper half: they have 16 digits, and the first is 8 or more. */
	if (address)
		return strlen(address) == 18 && strchr("89abcdef", address[2]);
	for (size_t i = 0; i < ARRAY_SIZE(of_users); i++)
		if (module && !strcmp(module, of_users[i]))
			return false;
	return module && module[0] == '[' && !text_of(frame, "offset");
}

/* Cuts a name to `wanted` bytes, but not within a UTF-8 character. */
static void cut_name(char *name, size_t size, size_t wanted)
{
	size_t end = size - 1;

	if (wanted < size)
		return;
	while (end && (name[end - 1] & 0xc0) == 0x80)
		end--;
	if (end && (name[end - 1] & 0x80))
		end--;
	name[end] = '\0';
}

/* Replaces characters that would end a line, or that control a terminal. */
static void clean(char *name, size_t size)
{
	char shown[CALLS_NAME_MAX];

	visible(shown, sizeof(shown) < size ? sizeof(shown) : size, name);
	strcpy(name, shown);
}

const char *calls_function(const struct call *call, char *name, size_t size)
{
	if (call->symbol || !text_of(call->frame, "function_offset"))
		return call->symbol;
	return calls_name(call, name, size);
}

bool calls_is_place(const struct call *call)
{
	const char *module = text_of(call->frame, "module");

	return !call->symbol && module && *module && *module != '[' &&
	       !json_object_get(call->frame, "function_offset");
}

const char *calls_name(const struct call *call, char *name, size_t size)
{
	const char *module = text_of(call->frame, "module"), *offset = text_of(call->frame, "offset");
	const char *place = offset ? offset : text_of(call->frame, "address");
	const char *function = text_of(call->frame, "function_offset");
	size_t wanted;

	if (call->symbol || !module)
		wanted = snprintf(name, size, "%s", call->symbol ? call->symbol : "[unknown]");
	else if (function)
		wanted = snprintf(name, size, "[%s+%s]", path_last(module), function);
	else
		wanted = snprintf(name, size, "%s%s%s", path_last(module), place ? "+" : "",
				  place ? place : "");
	cut_name(name, size, wanted);
	clean(name, size);
	return name;
}

void calls_fold(struct text *line, const char *name, const char *mark)
{
	size_t at = line->used;

	text_add(line, "%s%s%s", at ? ";" : "", name, mark);
	for (char *found = line->bytes + at + !!at; (found = strchr(found, ';'));)
		*found = ':';
}

const char *calls_owner(const json_t *entry, char *name, size_t size)
{
	const char *comm = text_of(entry, "comm");
	const json_t *pid = json_object_get(entry, "pid"), *tid = json_object_get(entry, "tid");
	size_t used = snprintf(name, size, "%s", comm ? comm : "");

	cut_name(name, size, used);
	if (pid && used < size)
		used += snprintf(name + used, size - used, "%s%lld", used ? "-" : "",
				 (long long)json_integer_value(pid));
	if (tid && used < size)
		used += snprintf(name + used, size - used, "%s%lld", used ? "/" : "",
				 (long long)json_integer_value(tid));
	if (!used)
		snprintf(name, size, "all");
	clean(name, size);
	return name;
}

bool calls_lead_to(const json_t *record)
{
	return json_object_get(json_array_get(json_object_get(record, "entries"), 0), "stack");
}

json_int_t calls_weight(const json_t *entry)
{
	static const char *const members[] = {"period", "count", "samples"};
	const json_t *weight = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(members) && !weight; i++)
		weight = json_object_get(entry, members[i]);
	return json_integer_value(weight);
}

const char *calls_kind(const json_t *record)
{
	const char *kind = text_of(json_object_get(record, "rest"), "kind");
	json_t *entry;
	size_t i;

	if (kind)
		return kind;
	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		kind = text_of(entry, "kind");
		if (!kind || strcmp(kind, "range"))
			break;
	}
	return kind ?: text_of(json_object_get(record, "rest_of_ranges"), "kind") ?: "";
}

static bool is_range(const json_t *entry)
{
	return !strcmp(text_of(entry, "kind") ?: "", "range");
}

json_t *calls_part(const json_t *record, bool ranges)
{
	static const char *const account[] = {"samples", "enabled_ns", "running_ns", "no_samples"};
	const json_t *others = json_object_get(record, "rest_of_ranges");
	bool alone = !strcmp(calls_kind(record), "range");
	json_t *of_ranges, *of_branches, *part = NULL, *entry;
	size_t i;

	if (!*calls_kind(record))
		return ranges ? NULL : json_incref((json_t *)record);
	of_ranges = json_array();
	of_branches = json_array();
	json_array_foreach(json_object_get(record, "entries"), i, entry)
		json_array_append(is_range(entry) ? of_ranges : of_branches, entry);
	if (!json_array_size(of_ranges) && !others) {
		part = ranges ? NULL : json_incref((json_t *)record);
	} else if (ranges || !alone) {
		part = json_copy((json_t *)record);
		json_object_set(part, "entries", ranges ? of_ranges : of_branches);
		json_object_del(part, "rest_of_ranges");
		if (ranges && others)
			json_object_set(part, "rest", (json_t *)others);
		else if (ranges && !alone) /* of records before 3.2.0, `rest` is of ranges if all is */
			json_object_del(part, "rest");
		for (i = 0; ranges && !alone && i < ARRAY_SIZE(account); i++)
			json_object_del(part, account[i]);
	}
	json_decref(of_ranges);
	json_decref(of_branches);
	return part;
}

void calls_each_part(const json_t *record, void (*take)(void *context, const json_t *part), void *context)
{
	for (int ranges = 0; ranges < 2; ranges++) {
		json_t *part = calls_part(record, ranges);

		if (part)
			take(context, part);
		json_decref(part);
	}
}

static const json_t *frame_of(const struct calls *calls, const json_t *stack, size_t i)
{
	return calls_frame(calls, json_integer_value(json_array_get(stack, i)));
}

const json_t *calls_own_code(const struct calls *calls, const json_t *entry)
{
	const json_t *from = json_object_get(entry, "from"), *stack = json_object_get(entry, "stack");

	if (json_is_object(from))
		return from;
	return json_array_size(stack) ? frame_of(calls, stack, 0) : json_object_get(entry, "code");
}

/* Whether two places are in one function of a file, in which others may be inlined. */
static bool same_function(const json_t *a, const json_t *b)
{
	struct call of_a = calls_at(a, calls_in(a) - 1), of_b = calls_at(b, calls_in(b) - 1);
	char name_of_a[CALLS_NAME_MAX], name_of_b[CALLS_NAME_MAX];

	return !strcmp(text_of(a, "module") ?: "", text_of(b, "module") ?: "") &&
	       !strcmp(calls_name(&of_a, name_of_a, sizeof(name_of_a)),
		       calls_name(&of_b, name_of_b, sizeof(name_of_b)));
}

static size_t list_calls(const json_t *frame, struct call **list, size_t nr, size_t *room)
{
	for (size_t i = calls_in(frame); i--;) {
		*list = xroom(*list, nr, room, sizeof(**list));
		(*list)[nr++] = calls_at(frame, i);
	}
	return nr;
}

size_t calls_path(const struct calls *calls, const json_t *entry, struct call **list, size_t *room)
{
	const json_t *stack = json_object_get(entry, "stack"), *from = json_object_get(entry, "from");
	bool leaves = json_is_array(stack) && json_is_object(from);
	size_t end = leaves && json_array_size(stack) && same_function(frame_of(calls, stack, 0), from);
	size_t nr = 0;

	for (size_t i = json_array_size(stack); i-- > end;)
		nr = list_calls(frame_of(calls, stack, i), list, nr, room);
	return leaves ? list_calls(from, list, nr, room) : nr;
}

const char *calls_lost(const json_t *entry, char *name, size_t size)
{
	const char *lost = text_of(entry, "stack_lost");

	if (!lost)
		return NULL;
	snprintf(name, size, "[stack lost: %s]", lost);
	return name;
}

const char *calls_end(const json_t *entry, char *name, size_t size)
{
	const json_t *from = json_object_get(entry, "from"), *to = json_object_get(entry, "to");
	const char *arrow = is_range(entry) ? " .. " : " -> ";
	struct call call;
	size_t used;

	if (!from)
		return NULL;
	call = calls_at(from, 0);
	calls_name(&call, name, size);
	used = strlen(name);
	if (!to || used + strlen(arrow) >= size)
		return name;
	strcpy(name + used, arrow);
	used += strlen(arrow);
	call = calls_at(to, 0);
	calls_name(&call, name + used, size - used);
	return name;
}

const char *step_file(const struct step *step)
{
	const char *module = step->call ? text_of(step->call->frame, "module") : NULL;

	return step->call && step->call->file ? step->call->file : module ?: "";
}

static void visit_words(const char *words, void (*visit)(void *of, const struct step *step), void *of)
{
	visit(of, &(struct step){.name = words});
}

static void visit_frame(const json_t *frame, void (*visit)(void *of, const struct step *step), void *of)
{
	char name[CALLS_NAME_MAX];

	for (size_t i = calls_in(frame); i--;) {
		struct call call = calls_at(frame, i);

		visit(of, &(struct step){calls_name(&call, name, sizeof(name)), &call});
	}
}

void calls_walk(const struct calls *calls, const json_t *entry,
		void (*visit)(void *of, const struct step *step), void *of)
{
	const json_t *stack = json_object_get(entry, "stack");
	char words[2 * CALLS_NAME_MAX];

	visit_words(calls_owner(entry, words, CALLS_NAME_MAX), visit, of);
	if (calls_lost(entry, words, sizeof(words)))
		visit_words(words, visit, of);
	for (size_t i = json_array_size(stack); i--;)
		visit_frame(frame_of(calls, stack, i), visit, of);
	if (calls_end(entry, words, sizeof(words)))
		visit_words(words, visit, of);
}
