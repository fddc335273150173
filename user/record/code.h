/* SPDX-License-Identifier: GPL-2.0-only */
/* Code as a value of a record, the same in all types of records. */
#pragma once

#include <jansson.h>

#include "naming/codes.h"
#include "record/compact.h"
#include "record/fields.h"

/* Adds as much as is known: module, symbol, file, line; or module, offset, function_offset, build_id; or
 * address. The texts are the code's. */
void fields_code(struct fields *fields, const struct code *code);
/* Appends a member with these, after a comma. `head` is its name as text: ",\"code\":". */
void append_code(struct compact *text, const char *head, const struct code *code);
/* Appends what data is as members, each after a comma. */
void append_datum(struct compact *text, const struct code *datum);
/* An object with these members. Returns a new reference. */
json_t *code_value(const struct code *code);

/* The account of names in the end record. Returns a new reference. */
json_t *code_account_value(const struct code_account *account);
