/* SPDX-License-Identifier: GPL-2.0-only */
/* Code as a value of a record, in the same form in all records. */
#ifndef NHMTAP_CODE_H
#define NHMTAP_CODE_H

#include <jansson.h>

#include "naming/codes.h"

/* An object with module, symbol, file, line; or module, offset, build_id; or address: what there is. A
 * new reference. */
json_t *code_value(const struct code *code);

/* The account of an end record; a new reference. */
json_t *code_account_value(const struct code_account *account);

#endif
