/* SPDX-License-Identifier: GPL-2.0-only */
/* The entries of debug information that a function has at an address: in its blocks, and inlined ones. */
#pragma once

#include <stdbool.h>
#include <elfutils/libdw.h>
#include <linux/types.h>

#include "confined/lines.h"

/* Is given each entry of the function and of those blocks in it that have code at the address, but not the
 * blocks themselves. `in`: the function that has the entry, perhaps an inlined one. */
typedef void scope_visit(void *context, Dwarf_Die *die, Dwarf_Die *in);

/* It ends early if no steps are left (lines_inside.h). */
void scope_each(struct lines *lines, Dwarf_Die *function, __u64 address, scope_visit *visit, void *context);

bool scope_is_variable(Dwarf_Die *die);

/* The type of what a function returned that was called: by the entry of the call in its caller, or that of
 * the function at `callee` (0: not known). `returns` is the address behind the call. Returns false if it is
 * not known. */
bool scope_returned(struct lines *lines, Dwarf_Die *caller, __u64 returns, __u64 callee, Dwarf_Die *type);
