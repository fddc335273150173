// SPDX-License-Identifier: GPL-2.0-only
#include "confined/access.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "confined/instructions.h"
#include "confined/lines_inside.h"
#include "naming/untyped.h"

#define FUNCTION_MOST (1 << 15) /* bytes; more would take too long for a name */
#define FOLLOWED_MOST 16	/* registers that are followed one after the other */
#define ACCESS_STEPS  1000000

/* A function, or the part of one, with its instructions. */
struct body {
	struct lines *lines;
	Dwarf_Die function;
	struct instruction *list;
	size_t nr;
};

/* What is in a register: the address of data of this type, plus an offset. */
struct pointer {
	Dwarf_Die type;
	__u64 offset;
	bool steps; /* plus a multiple of the type's size */
};

/* --- variables in registers -------------------------------------------------------------------- */

/* Whether the location says that the variable's value, less `offset`, is in the register. */
static bool is_in_register(const Dwarf_Op *ops, size_t nr, int reg, __u64 *offset)
{
	*offset = 0;
	if (nr == 1 && ops[0].atom == DW_OP_regx)
		return ops[0].number == (Dwarf_Word)reg;
	if (nr == 1)
		return ops[0].atom == DW_OP_reg0 + reg;
	*offset = ops[0].number;
	return nr == 2 && ops[0].atom == DW_OP_breg0 + reg && ops[1].atom == DW_OP_stack_value;
}

static bool variable_in(Dwarf_Die *die, __u64 address, int reg, __u64 *offset)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops[4];
	size_t sizes[4];
	int nr;

	if (!dwarf_attr(die, DW_AT_location, &attribute))
		return false;
	nr = dwarf_getlocation_addr(&attribute, address, ops, sizes, 4);
	for (int i = 0; i < nr && i < 4; i++)
		if (is_in_register(ops[i], sizes[i], reg, offset))
			return true;
	return false;
}

static bool is_block(int tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_try_block ||
	       tag == DW_TAG_catch_block;
}

/* The variables that a register has, by the kind of their type. */
struct in_register {
	struct pointer pointer;
	bool any, points, differ;
};

/* Whether they are the same but for qualifiers and typedefs. */
static bool same_type(const struct body *body, Dwarf_Die a, Dwarf_Die b)
{
	return type_peel(body->lines, &a) && type_peel(body->lines, &b) && a.addr == b.addr;
}

static void consider(struct body *body, Dwarf_Die *die, __u64 offset, struct in_register *found)
{
	Dwarf_Die type = *die, to;

	found->any = true;
	if (!type_of_entry(body->lines, &type) || !type_peel(body->lines, &type))
		return;
	to = type;
	if ((dwarf_tag(&type) != DW_TAG_pointer_type && dwarf_tag(&type) != DW_TAG_reference_type) ||
	    !lines_follow(body->lines, &to, DW_AT_type))
		return; /* a number, or a pointer to void, may be another variable's value, too */
	found->differ |= found->points &&
			 (!same_type(body, found->pointer.type, to) || found->pointer.offset != -offset);
	found->points = true;
	found->pointer = (struct pointer){.type = to, .offset = -offset};
}

static void look_in(struct body *body, Dwarf_Die *in, __u64 address, int reg, struct in_register *found,
		    int depth)
{
	Dwarf_Die die;
	__u64 offset;

	if (!lines_descend(body->lines, in, &die, depth))
		return;
	do {
		int tag = dwarf_tag(&die);

		if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
		    variable_in(&die, address, reg, &offset))
			consider(body, &die, offset, found);
		else if (is_block(tag) && dwarf_haspc(&die, address) > 0)
			look_in(body, &die, address, reg, found, depth + 1);
	} while (lines_next(body->lines, &die));
}

/* --- following --------------------------------------------------------------------------------- */

static bool is_jumped_to(const struct body *body, size_t i)
{
	return body->list[i].target;
}

/* The last instruction from which a jump leads to the i-th; `i` itself if one comes from before it. */
static size_t loop_end(const struct body *body, size_t i)
{
	size_t end = i;

	for (size_t n = 0; n < body->nr; n++) {
		if (body->list[n].jump != body->list[i].address)
			continue;
		if (n <= i)
			return i;
		end = n;
	}
	return end;
}

/*
 * Whether a register has the same value each time a loop begins at the i-th instruction, but for steps of a
 * constant size. The loop must be entered there alone, from the instruction before. Sets `step` to 0 if there
 * are none.
 */
static bool loop_keeps(const struct body *body, size_t i, int reg, __u64 *step)
{
	size_t end = loop_end(body, i);
	__u64 first = body->list[i].address, last = body->list[end].address;

	*step = 0;
	if (end == i || body->list[i - 1].ends)
		return false;
	for (size_t n = 0; n < body->nr; n++) {
		const struct instruction *at = &body->list[n];
		bool inside = n >= i && n <= end;

		if (at->jumps_anywhere || (!inside && at->jump > first && at->jump <= last))
			return false;
		if (!inside || !(at->writes & 1U << reg))
			continue;
		if (at->kind != INSTRUCTION_ADD || *step)
			return false;
		*step = at->memory.offset;
	}
	return true;
}

static const char *follow(struct body *body, size_t i, int reg, struct pointer *found, int depth);

/* Where data is in what a pointer points to, `more` bytes behind it. Steps are whole elements. */
static __u64 offset_of(struct body *body, const struct pointer *pointer, __u64 more)
{
	__u64 size = pointer->steps ? type_size(body->lines, &pointer->type) : 0,
	      offset = pointer->offset + more;

	if (!size)
		return offset;
	return (__s64)offset < 0 ? size - 1 - (-offset - 1) % size : offset % size;
}

/* What a pointer points to that is loaded from a field. */
static const char *pointee(struct body *body, const struct pointer *of, __u64 offset, struct pointer *found)
{
	Dwarf_Die type = of->type;
	const char *why = type_of_begin(body->lines, &type, offset_of(body, of, offset));

	if (why)
		return why;
	if (dwarf_tag(&type) != DW_TAG_pointer_type || !lines_follow(body->lines, &type, DW_AT_type))
		return TYPE_NO_POINTER;
	*found = (struct pointer){.type = type};
	return NULL;
}

/* What a register has after the i-th instruction has written it. */
static const char *written(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	const struct instruction *at = &body->list[i];
	struct pointer base = {.steps = false};
	Dwarf_Die variable;
	const char *why;

	switch (at->kind) {
	case INSTRUCTION_COPY:
		return follow(body, i, at->source, found, depth + 1);
	case INSTRUCTION_ADD:
		why = follow(body, i, reg, found, depth + 1);
		found->offset += at->memory.offset;
		return why;
	case INSTRUCTION_ADDRESS:
		if (at->memory.index >= 0 || at->memory.base < 0)
			return TYPE_NO_POINTER;
		why = follow(body, i, at->memory.base, found, depth + 1);
		found->offset += at->memory.offset;
		return why;
	case INSTRUCTION_LOAD:
		if (at->memory.fixed) {
			why = variable_at(body->lines, at->memory.offset, &variable, &base.offset);
			base.type = variable;
			return why ? why : pointee(body, &base, 0, found);
		}
		if (at->memory.base < 0)
			return TYPE_NO_POINTER;
		if (at->memory.base == REGISTER_STACK)
			return TYPE_STACK;
		why = follow(body, i, at->memory.base, &base, depth + 1);
		return why ? why : pointee(body, &base, at->memory.offset, found);
	default:
		return TYPE_NO_POINTER;
	}
}

/* What a register has before the i-th instruction. */
static const char *follow_steps(struct body *body, size_t i, int reg, struct pointer *found, int depth,
				__u64 *stepped)
{
	__u64 step;

	*found = (struct pointer){.offset = 0};
	if (depth > FOLLOWED_MOST)
		return TYPE_NO_POINTER;
	for (;;) {
		struct in_register variables = {.any = false};

		look_in(body, &body->function, body->list[i].address, reg, &variables, 0);
		/* Two variables may share a register, as one is a copy of the other; types that differ are
		 * casts, and which is right is not known. */
		if (variables.points) {
			*found = variables.pointer;
			return variables.differ ? TYPE_NO_POINTER : NULL;
		}
		if (!i || body->list[i - 1].ends ||
		    (is_jumped_to(body, i) && !loop_keeps(body, i, reg, &step)))
			return variables.any ? TYPE_NO_POINTER : TYPE_NO_REGISTER;
		*stepped = is_jumped_to(body, i) && step ? step : *stepped;
		i--;
		if (body->list[i].writes & 1U << reg)
			return written(body, i, reg, found, depth);
	}
}

static const char *follow(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	__u64 stepped = 0, size;
	const char *why = follow_steps(body, i, reg, found, depth, &stepped);

	if (why || !stepped)
		return why;
	size = type_size(body->lines, &found->type);
	found->steps = true;
	return size && (__s64)stepped % (__s64)size == 0 ? NULL : TYPE_NO_POINTER;
}

/* --- the instruction --------------------------------------------------------------------------- */

/* Takes the part of the function that contains the address. */
static bool range_of(Dwarf_Die *function, __u64 address, __u64 *low, __u64 *high)
{
	Dwarf_Addr base, begin, end;

	for (ptrdiff_t at = 0; (at = dwarf_ranges(function, at, &base, &begin, &end)) > 0;)
		if (address >= begin && address < end) {
			*low = begin;
			*high = end;
			return true;
		}
	return false;
}

static const __u8 *bytes_at(const struct code_bytes *code, __u64 low, __u64 high)
{
	for (size_t i = 0; i < code->nr; i++) {
		const struct code_part *part = &code->list[i];

		if (low >= part->address && high - part->address <= part->size && high > low)
			return part->bytes + (low - part->address);
	}
	return NULL;
}

/* Jumps whose targets are not known may lead to any instruction, so nothing is followed back. */
static void mark_targets(struct body *body)
{
	bool anywhere = false;

	for (size_t i = 0; i < body->nr; i++)
		anywhere |= body->list[i].jumps_anywhere;
	for (size_t i = 0; i < body->nr; i++) {
		size_t low = 0, high = body->nr;

		body->list[i].target |= anywhere;
		if (!body->list[i].jump)
			continue;
		while (low < high) {
			size_t middle = low + (high - low) / 2;

			if (body->list[middle].address < body->list[i].jump)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < body->nr && body->list[low].address == body->list[i].jump)
			body->list[low].target = true;
	}
}

static const char *look_at(struct body *body, size_t i, struct typed *typed)
{
	const struct memory_operand *memory = &body->list[i].memory;
	struct pointer base;
	const char *why;

	if (body->list[i].kind == INSTRUCTION_ADDRESS || !body->list[i].accesses)
		return TYPE_NO_OPERAND;
	if (memory->fixed)
		return type_of_variable(body->lines, memory->offset, typed);
	if (memory->base == REGISTER_STACK)
		return TYPE_STACK;
	why = memory->base >= 0 ? follow(body, i, memory->base, &base, 0) : TYPE_NO_REGISTER;
	/* An index without a scale may be the pointer. */
	if (why && memory->index >= 0 && memory->scale == 1 && !follow(body, i, memory->index, &base, 0))
		why = NULL;
	return why ? why
		   : type_of_pointed(body->lines, &base.type, offset_of(body, &base, memory->offset), typed);
}

static const char *find(struct body *body, const struct code_bytes *code, __u64 address, struct typed *typed)
{
	const char *why = TYPE_NO_CODE;
	__u64 low, high;
	const __u8 *bytes;

	if (!lines_function(body->lines, address, &body->function) ||
	    !range_of(&body->function, address, &low, &high))
		return TYPE_UNDESCRIBED;
	bytes = high - low <= FUNCTION_MOST ? bytes_at(code, low, high) : NULL;
	if (!bytes)
		return TYPE_NO_CODE;
	instructions_read(bytes, high - low, low, &body->list, &body->nr);
	mark_targets(body);
	body->lines->steps = ACCESS_STEPS;
	for (size_t i = 0; i < body->nr; i++)
		if (body->list[i].address == address)
			why = look_at(body, i, typed);
	free(body->list);
	return why;
}

const char *type_of_access(struct lines *lines, const struct code_bytes *code, __u64 address,
			   struct typed *typed)
{
	struct body body = {.lines = lines};
	size_t steps = lines->steps;
	const char *why = find(&body, code, address, typed);

	lines->steps = steps;
	return why;
}
