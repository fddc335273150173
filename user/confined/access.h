/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The type of what an instruction loads or stores: debug information tells which variable is in the register
 * that the address is made from, and so to what it points. Where it tells none, copies and loads of pointers
 * in the code before are followed, as far as debug information tells where they begin; where ways meet, on
 * all of them. What a compiler keeps on the stack for itself has the type of what is stored there, or else of
 * what it is stored to.
 */
#pragma once

#include "confined/code_bytes.h"
#include "confined/lines.h"
#include "confined/types.h"

/* The type and field that the instruction at an address (before relocation) accesses. Returns NULL, or why it
 * is not known: TYPE_… of naming/untyped.h. */
const char *type_of_access(struct lines *lines, const struct code_bytes *code, __u64 address,
			   struct typed *typed);
