/* SPDX-License-Identifier: GPL-2.0-only */
/* A program's file and the parts of it that are code, as a value of a record. */
#ifndef NHMTAP_PROGRAM_H
#define NHMTAP_PROGRAM_H

#include <jansson.h>

#include "naming/mapped_file.h"

/* A new reference. `code` is empty where the file can't be read any more, or is no 64-bit ELF. */
json_t *program_value(const struct mapped_file *program);

#endif
