/* SPDX-License-Identifier: GPL-2.0-only */
/* A program's file and its parts that are code, as a value of a record. */
#pragma once

#include <jansson.h>

#include "naming/mapped_file.h"

/* Returns a new reference. `code` is empty if the file can't be read any more, or is not a 64-bit ELF
 * file. */
json_t *program_value(const struct mapped_file *program);
