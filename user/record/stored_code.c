// SPDX-License-Identifier: GPL-2.0-only
#include "record/stored_code.h"

#include <stdlib.h>
#include <string.h>

#include "record/compact.h"
#include "record/record.h"
#include "record/type.h"

const char *stored_list(const json_t *record)
{
	const struct record_type *type = record_type_of(record);
	bool code = type && type->code[0] && json_is_array(json_object_get(record, type->list));

	return code ? type->list : NULL;
}

static bool hex_of(const json_t *value, const char *key, __u64 *number)
{
	const char *text = json_string_value(json_object_get(value, key));
	char *end;

	if (!text || strncmp(text, "0x", 2))
		return false;
	*number = strtoull(text, &end, 16);
	return !*end;
}

static bool is_kernel(__u64 address)
{
	return address >> 63;
}

/* Adds the functions that are inlined there, from the innermost, each with the place of its call in the next
 * one; as many as there is room for. */
static void put_inlined(json_t *code, const struct name *name)
{
	json_t *list = json_array();
	size_t size = compact_bytes(code);

	for (size_t i = 0; i + 1 < name->nr; i++) {
		json_t *inlined = json_object();

		put_text(inlined, "symbol", name->frames[i].symbol);
		put_text(inlined, "call_file", name->frames[i + 1].file);
		if (name->frames[i + 1].line)
			json_object_set_new(inlined, "call_line", json_integer(name->frames[i + 1].line));
		size += compact_bytes(inlined) + 1;
		if (size + 20 > STORED_NAME_MAX || !json_object_size(inlined)) {
			json_decref(inlined);
			break;
		}
		json_array_append_new(list, inlined);
	}
	if (json_array_size(list))
		json_object_set(code, "inlined", list);
	json_decref(list);
}

/* A call may be the last instruction of a function. Its return address is then in the next function. */
static bool is_return(const json_t *code)
{
	return json_is_true(json_object_get(code, "return"));
}

/* Whether the place is that of the function, so that the instruction is not known. */
static bool is_whole_function(const json_t *code)
{
	const json_t *function = json_object_get(code, "function_offset");

	return function && json_equal(function, json_object_get(code, "offset"));
}

static bool put_name(json_t *code, const struct name *name)
{
	const struct frame *function = &name->frames[name->nr - 1];
	const char *file = is_whole_function(code) ? NULL : name->frames[0].file;
	json_t *named;
	bool fits;

	if (!function->symbol)
		return false;
	named = json_object();
	put_text(named, "symbol", function->symbol);
	if (!is_whole_function(code))
		json_object_set_new(named, "symbol_offset", value_hex(function->offset + is_return(code)));
	json_object_update(named, code);
	json_object_del(named, "function_offset");
	if (name->module)
		json_object_set_new(named, "module", json_string(name->module));
	if (name->build_id && !name->module && strlen(name->build_id) <= 40) /* as the schema has it */
		json_object_set_new(named, "build_id", json_string(name->build_id));
	if (file) {
		put_text(named, "file", file);
		if (name->frames[0].line)
			json_object_set_new(named, "line", json_integer(name->frames[0].line));
	}
	if (file)
		put_inlined(named, name);
	fits = compact_bytes(named) <= STORED_NAME_MAX;
	if (fits) {
		json_object_clear(code);
		json_object_update(code, named);
	}
	json_decref(named);
	return fits;
}

/* The name of the code; NULL if it has a name already, or nothing to look up. */
static const struct name *look_up_name(const json_t *code, struct naming *naming, bool kernel)
{
	static const struct name other_kernel = {.why = "the records are of another boot of a kernel"};
	const char *module = json_string_value(json_object_get(code, "module"));
	const char *build_id = json_string_value(json_object_get(code, "build_id"));
	__u64 at;

	if (json_object_get(code, "symbol"))
		return NULL;
	if (hex_of(code, "offset", &at) && module) {
		if (!strcmp(module, "[vdso]") && !build_id && !kernel)
			return &other_kernel;
		return naming_file(naming, module, build_id, at - is_return(code));
	}
	if (hex_of(code, "address", &at) && is_kernel(at))
		return kernel ? naming_kernel(naming, at - is_return(code)) : &other_kernel;
	return NULL;
}

static bool name_code(json_t *code, struct naming *naming, bool kernel, struct stored_account *account)
{
	const struct name *name = json_is_object(code) ? look_up_name(code, naming, kernel) : NULL;
	__u64 address;

	if (!name)
		return false;
	if (name->lines_why)
		account->lines_why = name->lines_why;
	if (name->nr && put_name(code, name)) {
		account->named++;
		return true;
	}
	account->unnamed++;
	*(hex_of(code, "address", &address) ? &account->kernel_why : &account->why) = name->why;
	return false;
}

static bool name_ip(json_t *element, struct naming *naming, bool kernel, struct stored_account *account)
{
	json_t *code;
	__u64 address;
	bool added;

	if (json_object_get(element, "code") || !hex_of(element, "ip", &address) || !is_kernel(address))
		return false;
	code = json_object();
	json_object_set(code, "address", json_object_get(element, "ip"));
	added = name_code(code, naming, kernel, account);
	if (added)
		json_object_set(element, "code", code);
	json_decref(code);
	return added;
}

bool stored_name(const json_t *record, json_t *element, struct naming *naming, bool kernel,
		 struct stored_account *account)
{
	const struct record_type *type = record_type_of(record);
	bool added = name_ip(element, naming, kernel, account);

	for (const char *const *member = type->code; *member; member++)
		added |= name_code(**member ? json_object_get(element, *member) : element, naming, kernel,
				   account);
	return added;
}

static bool name_members(json_t *element, struct naming *naming, bool kernel, struct stored_account *account)
{
	bool added = name_code(json_object_get(element, "from"), naming, kernel, account);

	return name_code(json_object_get(element, "to"), naming, kernel, account) || added;
}

bool stored_name_single(json_t *record, struct naming *naming, bool kernel, struct stored_account *account)
{
	const char *type = json_string_value(json_object_get(record, "type"));
	json_t *element;
	bool added;
	size_t i;

	if (strcmp(type, "sample") && strcmp(type, "traced"))
		return false;
	added = name_ip(record, naming, kernel, account);
	added |= name_code(json_object_get(record, "code"), naming, kernel, account);
	added |= name_members(record, naming, kernel, account);
	json_array_foreach(json_object_get(record, "stack"), i, element)
		added |= name_code(element, naming, kernel, account);
	json_array_foreach(json_object_get(record, "branches"), i, element)
		added |= name_members(element, naming, kernel, account);
	return added;
}
