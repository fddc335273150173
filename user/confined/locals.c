// SPDX-License-Identifier: GPL-2.0-only
#include "confined/locals.h"

#include <dwarf.h>

#include "confined/instructions.h"
#include "confined/lines_inside.h"
#include "confined/scope.h"
#include "confined/types.h"
#include "naming/untyped.h"

bool locals_distance(const struct locals *locals, int reg, __u64 *distance)
{
	struct unwind_rule rule = unwind_table_at(locals->frames, locals->address);

	*distance = -(__u64)(__s64)rule.offset;
	return (rule.frame == FRAME_SP && reg == REGISTER_STACK) ||
	       (rule.frame == FRAME_BP && reg == REGISTER_FRAME);
}

bool locals_is_callers(const struct locals *locals, __u64 at)
{
	struct unwind_rule rule = unwind_table_at(locals->frames, locals->address);

	return (rule.bp == BP_AT_FRAME && at == (__u64)rule.bp_offset) ||
	       (rule.bx < 0 && at == 8 * (__u64)rule.bx);
}

/* Where an operation of one register and an offset leads, from the frame. */
static bool of_register(const struct locals *locals, const Dwarf_Op *op, __u64 *at)
{
	__u64 offset = op->number;
	int reg;

	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		reg = op->atom - DW_OP_breg0;
	} else if (op->atom == DW_OP_bregx) {
		reg = op->number > 31 ? -1 : (int)op->number;
		offset = op->number2;
	} else {
		return false;
	}
	if (!locals_distance(locals, reg, at))
		return false;
	*at += offset;
	return true;
}

/* Where DW_OP_fbreg counts from. */
static bool base_of(const struct locals *locals, __u64 *at)
{
	Dwarf_Attribute attribute;
	size_t size;
	Dwarf_Op *ops;

	if (!lines_location(locals->function, DW_AT_frame_base, &attribute) ||
	    dwarf_getlocation_addr(&attribute, locals->address, &ops, &size, 1) != 1 || size != 1)
		return false;
	*at = 0;
	if (ops->atom >= DW_OP_reg0 && ops->atom <= DW_OP_reg31)
		return locals_distance(locals, ops->atom - DW_OP_reg0, at);
	return ops->atom == DW_OP_call_frame_cfa || of_register(locals, ops, at);
}

/* Where an operation leads, from the frame. */
static bool leads_to(const struct locals *locals, const Dwarf_Op *op, __u64 *at)
{
	*at = 0;
	if (op->atom == DW_OP_call_frame_cfa)
		return true;
	if (op->atom != DW_OP_fbreg)
		return of_register(locals, op, at);
	if (!base_of(locals, at))
		return false;
	*at += op->number;
	return true;
}

struct wanted_local {
	const struct locals *locals;
	__u64 at; /* from the frame */
	struct in_variable *in;
	bool found, differ;
};

#define OPERATIONS_MOST 64

/* Whether what is wanted is among `size` bytes of the variable, those from `inside` on, that an operation
 * leads to. */
static bool is_part(struct wanted_local *wanted, const Dwarf_Op *op, __u64 size, __u64 *inside)
{
	__u64 at;

	if (!leads_to(wanted->locals, op, &at) || wanted->at - at >= size)
		return false;
	*inside += wanted->at - at;
	return true;
}

/* A variable is in one place, or in several parts, some of which may be in registers or nowhere. */
static bool is_wanted(struct wanted_local *wanted, Dwarf_Die *die, __u64 size, __u64 *inside)
{
	Dwarf_Attribute attribute;
	size_t nr;
	Dwarf_Op *ops;

	*inside = 0;
	if (!lines_location(die, DW_AT_location, &attribute) ||
	    dwarf_getlocation_addr(&attribute, wanted->locals->address, &ops, &nr, 1) != 1 ||
	    nr > OPERATIONS_MOST)
		return false;
	if (nr == 1)
		return is_part(wanted, ops, size, inside);
	for (size_t i = 0, first = 0; i < nr; i++) {
		if (ops[i].atom != DW_OP_piece)
			continue;
		if (i == first + 1 && is_part(wanted, &ops[first], ops[i].number, inside))
			return *inside < size;
		*inside += ops[i].number;
		first = i + 1;
	}
	return false;
}

static void consider(void *context, Dwarf_Die *die, Dwarf_Die *in)
{
	struct wanted_local *wanted = context;
	struct lines *lines = wanted->locals->lines;
	Dwarf_Die type = *die;
	__u64 inside;

	if (!scope_is_variable(die) || !type_of_entry(lines, &type) ||
	    !is_wanted(wanted, die, type_size(lines, &type), &inside))
		return;
	wanted->differ |= wanted->found &&
			  (!type_is_same(lines, wanted->in->type, type) || wanted->in->offset != inside);
	/* An argument of an inlined function may be where the caller's own variable is, which is the first.
	 */
	if (!wanted->found)
		*wanted->in = (struct in_variable){*die, *in, type, inside};
	wanted->found = true;
}

const char *locals_at(const struct locals *locals, int reg, __u64 offset, struct in_variable *found)
{
	struct wanted_local wanted = {.locals = locals, .in = found};

	if (!locals_distance(locals, reg, &wanted.at))
		return TYPE_STACK;
	wanted.at += offset;
	scope_each(locals->lines, locals->function, locals->address, consider, &wanted);
	/* Variables of different types in one place: a cast, or parts of each other. */
	return wanted.differ ? TYPE_NO_POINTER : wanted.found ? NULL : TYPE_STACK;
}
