/* SPDX-License-Identifier: GPL-2.0-only */
/* Instructions as text, by libcapstone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "naming/message.h"

/* Loads libcapstone, which needs system calls that are not left. Returns NULL, or why there is none: one of
 * the texts CODE_… of naming/message.h. */
const char *disassemble_load_library(void);

/* Appends the instructions of code that begins at this address (AT&T's syntax); what is none has the text
 * "(bad)" or ".byte". Returns NULL, or why there are none. The caller frees the list. */
const char *disassemble(const __u8 *code, size_t size, __u64 address, bool wide,
			struct told_instruction **list, size_t *nr);
