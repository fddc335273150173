// SPDX-License-Identifier: GPL-2.0-only
#include "record/code.h"

#include <string.h>

#include "record/record.h"

json_t *code_value(const struct code *code)
{
	json_t *record = json_object();

	put_text(record, "symbol", code->symbol);
	put_text(record, "linkage_name", code->linkage);
	put_text(record, "module", code->module);
	if (code->has_offset)
		json_object_set_new(record, "offset", value_hex(code->offset));
	if (code->has_address)
		json_object_set_new(record, "address", value_hex(code->address));
	put_text(record, "build_id", code->build_id);
	put_text(record, "file", code->file);
	if (code->line)
		json_object_set_new(record, "line", json_integer(code->line));
	if (code->inlined)
		json_object_set_new(record, "inlined", json_loads(code->inlined, 0, NULL));
	return record;
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

	if (account->failed_why)
		json_object_set_new(value, "failed_why", json_string(account->failed_why));
	if (account->lines_why)
		json_object_set_new(value, "lines_why", json_string(account->lines_why));
	if (account->kernel_why)
		json_object_set_new(value, "kernel_why", json_string(account->kernel_why));
	return value;
}
