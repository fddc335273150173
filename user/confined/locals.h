/* SPDX-License-Identifier: GPL-2.0-only */
/* Variables and parameters of functions that are on the stack: by the frame, whose place the unwind table
 * tells in registers. */
#pragma once

#include <stdbool.h>
#include <elfutils/libdw.h>
#include <linux/types.h>

#include "confined/lines.h"
#include "confined/types.h"
#include "unwind/table.h"

/* Code of a function. */
struct locals {
	struct lines *lines;
	const struct unwind_table *frames;
	Dwarf_Die *function;
	__u64 address; /* the instruction */
};

/* Whether a register is, at this instruction, at a known distance from the function's frame (the CFA): sets
 * it, modulo 2^64. */
bool locals_distance(const struct locals *locals, int reg, __u64 *distance);

/* The variable that is `offset` bytes from where this register points, and where in it that is. Returns NULL,
 * or why it is not known: TYPE_… of naming/untyped.h; TYPE_STACK if no variable is there. */
const char *locals_at(const struct locals *locals, int reg, __u64 offset, struct in_variable *found);

/* Whether the place, from the frame, is where the function keeps a register of its caller's at this
 * instruction. */
bool locals_is_callers(const struct locals *locals, __u64 at);
