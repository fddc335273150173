// SPDX-License-Identifier: GPL-2.0-only
#include "confined/scope.h"

#include <dwarf.h>

#include "confined/lines_inside.h"
#include "confined/types.h"

bool scope_is_variable(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_variable || dwarf_tag(die) == DW_TAG_formal_parameter;
}

static bool is_block(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_try_block ||
	       tag == DW_TAG_catch_block;
}

struct visitor {
	struct lines *lines;
	__u64 address;
	scope_visit *visit;
	void *context;
};

/* A visit may look far away in the file, as at types, which is none of the way of this walk. */
static void visit_one(const struct visitor *visitor, Dwarf_Die *die, Dwarf_Die *function)
{
	Dwarf_Off furthest = visitor->lines->furthest;

	visitor->visit(visitor->context, die, function);
	visitor->lines->furthest = furthest;
}

static void visit_below(const struct visitor *visitor, Dwarf_Die *in, Dwarf_Die *function, int depth)
{
	Dwarf_Die die;

	if (!lines_descend(visitor->lines, in, &die, depth))
		return;
	do {
		if (!is_block(&die))
			visit_one(visitor, &die, function);
		else if (dwarf_haspc(&die, visitor->address) > 0)
			visit_below(visitor, &die,
				    dwarf_tag(&die) == DW_TAG_inlined_subroutine ? &die : function,
				    depth + 1);
	} while (lines_next(visitor->lines, &die));
}

void scope_each(struct lines *lines, Dwarf_Die *function, __u64 address, scope_visit *visit, void *context)
{
	Dwarf_Off furthest = lines->furthest;

	lines->furthest = dwarf_dieoffset(function);
	visit_below(&(struct visitor){lines, address, visit, context}, function, function, 0);
	lines->furthest = furthest;
}

/* --- calls ------------------------------------------------------------------------------------- */

struct wanted_call {
	__u64 returns;
	Dwarf_Die die;
	bool found;
};

static bool has_address(Dwarf_Die *die, unsigned int name, __u64 wanted)
{
	Dwarf_Attribute attribute;
	Dwarf_Addr address;

	return dwarf_attr(die, name, &attribute) && !dwarf_formaddr(&attribute, &address) &&
	       address == wanted;
}

static void consider_call(void *context, Dwarf_Die *die, Dwarf_Die *in)
{
	struct wanted_call *wanted = context;
	int tag = dwarf_tag(die);

	if ((tag != DW_TAG_call_site || !has_address(die, DW_AT_call_return_pc, wanted->returns)) &&
	    (tag != DW_TAG_GNU_call_site || !has_address(die, DW_AT_low_pc, wanted->returns)))
		return;
	wanted->die = *die;
	wanted->found = true;
}

bool scope_returned(struct lines *lines, Dwarf_Die *caller, __u64 returns, __u64 callee, Dwarf_Die *type)
{
	struct wanted_call wanted = {.returns = returns};

	/* The entry of a call is in the block of the call, which need not have the code behind it. */
	scope_each(lines, caller, returns - 1, consider_call, &wanted);
	*type = wanted.die;
	if (wanted.found && (lines_follow(lines, type, DW_AT_call_origin) ||
			     lines_follow(lines, type, DW_AT_abstract_origin)))
		return type_of_entry(lines, type);
	return callee && lines_function(lines, callee, type) && type_of_entry(lines, type);
}
