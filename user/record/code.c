// SPDX-License-Identifier: GPL-2.0-only
#include "record/code.h"

void fields_code(struct fields *fields, const struct code *code)
{
	fields_string(fields, "symbol", code->symbol);
	fields_string(fields, "linkage_name", code->linkage);
	fields_string(fields, "module", code->module);
	if (code->has_offset)
		fields_hex(fields, "offset", code->offset);
	if (code->has_function)
		fields_hex(fields, "function_offset", code->function);
	if (code->has_address)
		fields_hex(fields, "address", code->address);
	fields_string(fields, "build_id", code->build_id);
	fields_string(fields, "file", code->file);
	if (code->line)
		fields_number(fields, "line", code->line);
	if (code->inlined)
		fields_value(fields, "inlined", json_loads(code->inlined, 0, NULL));
}

void append_code(struct compact *text, const char *head, const struct code *code)
{
	struct fields fields;
	size_t begun;

	fields_begin(&fields);
	fields_code(&fields, code);
	compact_add_text(text, head);
	begun = text->used;
	compact_add_fields(text, &fields);
	compact_close(text, begun);
	fields_clear(&fields);
}

void append_datum(struct compact *text, const struct code *datum)
{
	struct fields fields;

	fields_begin(&fields);
	fields_string(&fields, "variable", datum->symbol);
	if (datum->has_offset)
		fields_number(&fields, "variable_offset", datum->offset);
	fields_string(&fields, "data_module", datum->module);
	fields_string(&fields, "data_type", datum->type);
	fields_string(&fields, "field", datum->field);
	fields_string(&fields, "untyped", datum->untyped);
	compact_add_fields(text, &fields);
	fields_clear(&fields);
}

json_t *code_value(const struct code *code)
{
	struct fields fields;
	json_t *value = json_object();

	fields_begin(&fields);
	fields_code(&fields, code);
	fields_put(&fields, value);
	fields_clear(&fields);
	return value;
}

static json_t *untyped_value(const struct data_account *account)
{
	json_t *value = json_object();

	for (size_t i = 0; code_untyped_words[i]; i++)
		json_object_set_new(value, code_untyped_words[i], json_integer(account->untyped[i]));
	return value;
}

static json_t *data_account_value(const struct data_account *account)
{
	json_t *value = json_pack(
		"{s:I, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:I}", "named", (json_int_t)account->named,
		"unnamed", "no_address", (json_int_t)account->no_address, "kernel",
		(json_int_t)account->kernel, "no_variable", (json_int_t)account->no_variable, "no_mapping",
		(json_int_t)account->no_mapping, "no_symbol", (json_int_t)account->no_symbol, "no_file",
		(json_int_t)account->no_file, "no_time", (json_int_t)account->no_time, "ambiguous",
		(json_int_t)account->ambiguous);

	if (account->types_asked) {
		json_object_set_new(value, "typed", json_integer(account->typed));
		json_object_set_new(value, "untyped", untyped_value(account));
	}
	return value;
}

json_t *code_account_value(const struct code_account *account)
{
	json_t *value = json_pack(
		"{s:I, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:I}", "named", (json_int_t)account->named,
		"unnamed", "no_pid", (json_int_t)account->no_pid, "no_mapping",
		(json_int_t)account->no_mapping, "no_file", (json_int_t)account->no_file, "no_symbol",
		(json_int_t)account->no_symbol, "refused", (json_int_t)account->refused, "failed",
		(json_int_t)account->failed, "no_room", (json_int_t)account->no_room, "no_time",
		(json_int_t)account->no_time, "ambiguous", (json_int_t)account->ambiguous);

	if (account->data.asked)
		json_object_set_new(value, "data", data_account_value(&account->data));
	if (account->failed_why)
		json_object_set_new(value, "failed_why", json_string(account->failed_why));
	if (account->lines_why)
		json_object_set_new(value, "lines_why", json_string(account->lines_why));
	if (account->kernel_why)
		json_object_set_new(value, "kernel_why", json_string(account->kernel_why));
	return value;
}
