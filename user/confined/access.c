// SPDX-License-Identifier: GPL-2.0-only
#include "confined/access.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "confined/instructions.h"
#include "confined/lines_inside.h"
#include "confined/locals.h"
#include "confined/scope.h"
#include "naming/untyped.h"

#define FUNCTION_MOST (1 << 15) /* bytes; more would take too long for a name */
#define FOLLOWED_MOST 16	/* registers that are followed one after the other */
#define ACCESS_STEPS  1000000

/* A function, or the part of one, with its instructions. */
struct body {
	struct lines *lines;
	const struct code_bytes *code;
	Dwarf_Die function;
	struct instruction *list;
	size_t nr;
};

enum pointer_kind {
	TO_DATA,
	TO_THREAD, /* the thread pointer */
	NUMBER,	   /* zero */
};

/* What is in a register: the address of data of this type, or another begin, plus an offset. */
struct pointer {
	enum pointer_kind kind;
	Dwarf_Die type;
	__u64 offset;
	bool steps;		      /* plus a multiple of the type's size */
	bool indexed;		      /* plus an index */
	Dwarf_Die variable, function; /* the variable that this is in: see struct in_variable */
};

/* --- variables in registers -------------------------------------------------------------------- */

/* Whether the operations say that a value, less `offset`, is in the register. */
static bool is_in_register(const Dwarf_Op *ops, size_t nr, int reg, __u64 *offset)
{
	*offset = 0;
	if (nr == 1 && ops[0].atom == DW_OP_regx)
		return ops[0].number == (Dwarf_Word)reg;
	if (nr == 1)
		return ops[0].atom == DW_OP_reg0 + reg;
	if (nr != 2 || ops[0].atom != DW_OP_breg0 + reg || ops[1].atom != DW_OP_stack_value)
		return false;
	*offset = ops[0].number;
	return true;
}

/* Whether the location says that the variable is in the register, or those of its bytes that begin at
 * `inside`, as the pointer of a slice. */
static bool has_register(const Dwarf_Op *ops, size_t nr, int reg, __u64 *inside, __u64 *offset)
{
	size_t first = 0;

	*inside = 0;
	for (size_t i = 0; i < nr; i++) {
		if (ops[i].atom != DW_OP_piece)
			continue;
		if (is_in_register(&ops[first], i - first, reg, offset))
			return true;
		*inside += ops[i].number;
		first = i + 1;
	}
	return !first && is_in_register(ops, nr, reg, offset);
}

static bool variable_in(Dwarf_Die *die, __u64 address, int reg, __u64 *inside, __u64 *offset)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops[4];
	size_t sizes[4];
	int nr;

	if (!dwarf_attr(die, DW_AT_location, &attribute))
		return false;
	nr = dwarf_getlocation_addr(&attribute, address, ops, sizes, 4);
	for (int i = 0; i < nr && i < 4; i++)
		if (has_register(ops[i], sizes[i], reg, inside, offset))
			return true;
	return false;
}

static bool is_pointer(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

/* The variables that a register has, by the kind of their type. */
struct in_register {
	struct body *body;
	__u64 address;
	int reg;
	struct pointer pointer;
	bool any, points, differ;
};

/* Whether a distance, of either sign, is a multiple of a size. */
static bool is_multiple(__u64 distance, __u64 size)
{
	return size && ((__s64)distance < 0 ? -distance : distance) % size == 0;
}

/* Whether data of a type, at an offset, are whole elements away from what a pointer leads to. */
static bool are_elements(struct lines *lines, const struct pointer *pointer, Dwarf_Die type, __u64 offset)
{
	return type_is_same(lines, pointer->type, type) &&
	       is_multiple(pointer->offset - offset, type_size(lines, &type));
}

static void consider(void *context, Dwarf_Die *die, Dwarf_Die *in)
{
	struct in_register *found = context;
	struct lines *lines = found->body->lines;
	Dwarf_Die type = *die, to;
	__u64 inside, offset;

	if (!scope_is_variable(die) || !variable_in(die, found->address, found->reg, &inside, &offset))
		return;
	found->any = true;
	if (!type_of_entry(lines, &type) || type_of_begin(lines, &type, inside))
		return;
	to = type;
	/* A number, or a pointer to void or to a class without members, may be another variable's value, too.
	 */
	if (!is_pointer(&type) || !lines_follow(lines, &to, DW_AT_type) || type_is_empty(lines, to))
		return;
	/* An iterator may lead to the next element already. */
	if (found->points && are_elements(lines, &found->pointer, to, -offset)) {
		found->pointer.steps |= found->pointer.offset != -offset;
		return;
	}
	/* What is inlined may have a pointer to what the data begin with. */
	if (found->points && found->pointer.offset == -offset &&
	    type_begins_with(lines, found->pointer.type, to))
		return;
	found->differ |= found->points && (found->pointer.offset != -offset ||
					   !type_begins_with(lines, to, found->pointer.type));
	found->points = true;
	found->pointer = (struct pointer){.type = to, .offset = -offset};
}

/* --- following --------------------------------------------------------------------------------- */

static bool is_jumped_to(const struct body *body, size_t i)
{
	return body->list[i].target;
}

/* The only instruction from which a jump leads to the i-th, from before it; `i` itself if there are others,
 * or none. */
static size_t jumped_from(const struct body *body, size_t i)
{
	size_t from = i;

	for (size_t n = 0; n < body->nr; n++) {
		if (body->list[n].jumps_anywhere)
			return i;
		if (body->list[n].jump != body->list[i].address)
			continue;
		if (n >= i || from != i)
			return i;
		from = n;
	}
	return from;
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

/* Where a pointer points to in its data. Steps are whole elements. */
static __u64 offset_of(struct body *body, const struct pointer *pointer)
{
	__u64 size = pointer->steps ? type_size(body->lines, &pointer->type) : 0, offset = pointer->offset;

	if (!size)
		return offset;
	return (__s64)offset < 0 ? size - 1 - (-offset - 1) % size : offset % size;
}

static void point_into(struct pointer *pointer, const struct in_variable *in)
{
	pointer->type = in->type;
	pointer->offset = in->offset;
	pointer->variable = in->die;
	pointer->function = in->function;
}

/* Makes the begin of threads' variables one of them. */
static const char *settle(struct body *body, struct pointer *pointer)
{
	struct in_variable in;
	const char *why;

	if (pointer->kind == NUMBER)
		return TYPE_NO_POINTER;
	if (pointer->kind == TO_DATA)
		return NULL;
	pointer->kind = TO_DATA;
	why = thread_variable_at(body->lines, pointer->offset + body->code->thread_size, &in);
	if (!why)
		point_into(pointer, &in);
	return why ? TYPE_UNDESCRIBED : NULL;
}

/* What a pointer of this type points to. */
static const char *pointee(struct body *body, Dwarf_Die type, struct pointer *found)
{
	if (!type_peel(body->lines, &type) || !is_pointer(&type) ||
	    !lines_follow(body->lines, &type, DW_AT_type))
		return TYPE_NO_POINTER;
	*found = (struct pointer){.type = type};
	return NULL;
}

/* What a pointer points to that is loaded from where another one points to. */
static const char *loaded(struct body *body, struct pointer *from, struct pointer *found)
{
	Dwarf_Die type;
	const char *why = settle(body, from);

	type = from->type;
	if (!why)
		why = type_of_begin(body->lines, &type, offset_of(body, from));
	return why ? why : pointee(body, type, found);
}

/* An index may count from before or behind what the rest of an address is in. It is believed where it counts
 * from the begin of an array. */
static const char *check_index(struct body *body, const struct memory_operand *memory, struct pointer *found)
{
	const char *why = memory->index >= 0 ? settle(body, found) : NULL;

	if (why || memory->index < 0)
		return why;
	found->indexed = true;
	return type_is_indexed(body->lines, found->type, found->offset) ? NULL : TYPE_NO_POINTER;
}

/* The instruction before the i-th, in straight code, that has written a register; `i` itself if none is
 * known. */
static size_t writer(const struct body *body, size_t i, int reg)
{
	for (size_t at = i; at && !is_jumped_to(body, at) && !body->list[at - 1].ends; at--)
		if (body->list[at - 1].writes & 1U << reg)
			return at - 1;
	return i;
}

/*
 * Whether an index may count elements of what a pointer points to. It does not if it can be any number: a
 * variable of the source, or what was loaded, which would have to be multiplied by the size first.
 */
static bool may_count(struct body *body, size_t i, int index, int scale, const struct pointer *pointer)
{
	struct in_register variables = {body, body->list[i].address, index, .any = false};
	__u64 size = type_size(body->lines, &pointer->type);
	size_t from;

	if (type_is_indexed(body->lines, pointer->type, pointer->offset) || !size || scale % size == 0)
		return true;
	scope_each(body->lines, &body->function, variables.address, consider, &variables);
	from = writer(body, i, index);
	return !variables.any && (from == i || body->list[from].kind != INSTRUCTION_LOAD);
}

/* What the i-th instruction's operand is the address of; an index that counts elements is left out. */
static const char *operand(struct body *body, size_t i, const struct memory_operand *memory,
			   struct pointer *found, int depth)
{
	struct locals locals = {body->lines, &body->code->frames, &body->function, body->list[i].address};
	struct in_variable in;
	const char *why = NULL;

	*found = (struct pointer){.offset = 0};
	if (memory->thread) {
		if (memory->base >= 0)
			why = follow(body, i, memory->base, found, depth + 1);
		else
			found->kind = NUMBER;
		if (why || found->kind != NUMBER)
			return why ? why : TYPE_NO_POINTER;
		found->kind = TO_THREAD;
		found->offset += memory->offset;
		return check_index(body, memory, found);
	}
	if (memory->fixed) {
		why = variable_at(body->lines, memory->offset, &in);
		if (!why)
			point_into(found, &in);
		return why;
	}
	if (memory->base == REGISTER_STACK || locals_have(&locals, memory->base)) {
		why = locals_at(&locals, memory->base, memory->offset, &in);
		if (!why)
			point_into(found, &in);
		return why ? why : check_index(body, memory, found);
	}
	if (memory->base < 0)
		return TYPE_NO_REGISTER;
	why = follow(body, i, memory->base, found, depth + 1);
	found->offset += memory->offset;
	if (why || memory->index < 0)
		return why;
	found->indexed = true;
	return may_count(body, i, memory->index, memory->scale, found) ? NULL : TYPE_NO_POINTER;
}

/* What the dynamic linker has put into a slot for threads' variables, or what the function returns that takes
 * it: a distance from the thread pointer, or an address that is the same for this thread. Returns false if
 * there is none at the fixed address, or one of another kind. */
static bool from_slot(const struct body *body, const struct memory_operand *memory, bool called,
		      struct pointer *found)
{
	const struct thread_slot *slot =
		memory->fixed ? thread_slot_at(&body->code->slots, memory->offset) : NULL;

	if (!slot || called == (slot->kind == THREAD_SLOT_DISTANCE))
		return false;
	*found = (struct pointer){.kind = slot->kind == THREAD_SLOT_ADDRESS ? TO_THREAD : NUMBER,
				  .offset = slot->at - body->code->thread_size};
	return true;
}

#define REGISTER_ARGUMENT 5 /* rdi: the first */

/* Whether the call is one for the place of a thread's variable, by the slot whose address it is given. */
static bool asks_for_place(const struct body *body, size_t i, struct pointer *found)
{
	const struct memory_operand *called = &body->list[i].memory;
	size_t from = writer(body, i, called->base < 0 ? REGISTER_ARGUMENT : called->base);

	return body->list[from].kind == INSTRUCTION_ADDRESS &&
	       from_slot(body, &body->list[from].memory, true, found);
}

/* What a sum is that has the thread pointer, and a distance from it. */
static const char *sum(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	const struct instruction *at = &body->list[i];
	struct pointer more = {0};
	const char *why = follow(body, i, reg, found, depth + 1);

	if (why)
		return why;
	if (at->source >= 0)
		why = follow(body, i, at->source, &more, depth + 1);
	else if (at->memory.thread && at->memory.base < 0 && at->memory.index < 0 && !at->memory.offset)
		more = (struct pointer){.kind = TO_THREAD};
	else if (!from_slot(body, &at->memory, false, &more))
		return TYPE_NO_POINTER;
	if (why || (found->kind == NUMBER) == (more.kind == NUMBER))
		return TYPE_NO_POINTER;
	more.offset += found->offset;
	found->offset = more.offset;
	if (found->kind == NUMBER)
		*found = more;
	return NULL;
}

/* What a register has after the i-th instruction has written it. */
static const char *written(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	const struct instruction *at = &body->list[i];
	struct memory_operand copied = {.base = at->source, .index = -1};
	struct pointer base;
	Dwarf_Die type;
	const char *why;

	switch (at->kind) {
	case INSTRUCTION_COPY:
		return operand(body, i, &copied, found, depth);
	case INSTRUCTION_NUMBER:
		*found = (struct pointer){.kind = NUMBER, .offset = at->memory.offset};
		return NULL;
	case INSTRUCTION_ADD:
		why = follow(body, i, reg, found, depth + 1);
		found->offset += at->memory.offset;
		return why;
	case INSTRUCTION_SUM:
		return sum(body, i, reg, found, depth);
	case INSTRUCTION_ADDRESS:
		if (at->memory.index >= 0 || (at->memory.base < 0 && !at->memory.fixed))
			return TYPE_NO_POINTER;
		return operand(body, i, &at->memory, found, depth);
	case INSTRUCTION_LOAD:
		if (from_slot(body, &at->memory, false, found))
			return NULL;
		why = operand(body, i, &at->memory, &base, depth);
		/* The thread pointer points to itself. */
		if (!why && base.kind == TO_THREAD && !base.offset) {
			*found = base;
			return NULL;
		}
		return why ? why : loaded(body, &base, found);
	case INSTRUCTION_CALL:
		if (!reg && asks_for_place(body, i, found))
			return NULL;
		if (reg || i + 1 >= body->nr ||
		    !scope_returned(body->lines, &body->function, body->list[i + 1].address, at->callee,
				    &type))
			return TYPE_NO_POINTER;
		return pointee(body, type, found);
	default:
		return TYPE_NO_POINTER;
	}
}

/* The instruction before the i-th, after which the register has the same but for steps of a constant size;
 * `i` itself if there may be several, or none. */
static size_t step_back(const struct body *body, size_t i, int reg, __u64 *step)
{
	*step = 0;
	if (!i)
		return i;
	if (body->list[i - 1].ends)
		return jumped_from(body, i);
	return !is_jumped_to(body, i) || loop_keeps(body, i, reg, step) ? i - 1 : i;
}

/* What a register has before the i-th instruction. */
static const char *follow_steps(struct body *body, size_t i, int reg, struct pointer *found, int depth,
				__u64 *stepped)
{
	__u64 step;
	size_t before;

	*found = (struct pointer){.offset = 0};
	if (depth > FOLLOWED_MOST)
		return TYPE_NO_POINTER;
	for (;;) {
		struct in_register variables = {body, body->list[i].address, reg, .any = false};

		scope_each(body->lines, &body->function, variables.address, consider, &variables);
		/* Two variables may share a register, as one is a copy of the other; types that differ are
		 * casts, and which is right is not known. */
		if (variables.points) {
			*found = variables.pointer;
			return variables.differ ? TYPE_NO_POINTER : NULL;
		}
		before = step_back(body, i, reg, &step);
		if (before == i)
			return variables.any ? TYPE_NO_POINTER : TYPE_NO_REGISTER;
		*stepped = step ? step : *stepped;
		i = before;
		if (body->list[i].writes & 1U << reg)
			return written(body, i, reg, found, depth);
	}
}

static const char *follow(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	__u64 stepped = 0;
	const char *why = follow_steps(body, i, reg, found, depth, &stepped);

	if (why || !stepped)
		return why;
	found->steps = true;
	return is_multiple(stepped, type_size(body->lines, &found->type)) ? NULL : TYPE_NO_POINTER;
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

/* Whether a pointer leads to other data than its type says: what is accessed is wider. Any data may be behind
 * a pointer to bytes. The members of a struct are often accessed together, and so are elements, by vectors.
 */
static bool is_cast(struct body *body, Dwarf_Die type, unsigned int width)
{
	return width && type_peel(body->lines, &type) && dwarf_tag(&type) == DW_TAG_base_type &&
	       type_size(body->lines, &type) < width;
}

static const char *look_at(struct body *body, size_t i, struct typed *typed)
{
	const struct memory_operand *memory = &body->list[i].memory;
	struct pointer base;
	const char *why;

	if (!body->list[i].accesses)
		return TYPE_NO_OPERAND;
	if (memory->fixed)
		return type_of_variable(body->lines, memory->offset, typed);
	why = operand(body, i, memory, &base, 0);
	/* An index without a scale may be the pointer. */
	if (why && !memory->thread && memory->base != REGISTER_STACK && memory->index >= 0 &&
	    memory->scale == 1 && !follow(body, i, memory->index, &base, 0)) {
		base.offset += memory->offset;
		base.indexed = memory->base >= 0; /* which counts then */
		why = !base.indexed || may_count(body, i, memory->base, 1, &base) ? NULL : TYPE_NO_POINTER;
	}
	if (!why)
		why = settle(body, &base);
	if (!why && !base.variable.addr && is_cast(body, base.type, body->list[i].width))
		why = TYPE_NO_POINTER;
	if (!why)
		why = type_of_pointed(body->lines, &base.type, offset_of(body, &base), typed);
	if (!why)
		type_name_variable(
			body->lines,
			&(struct in_variable){base.variable, base.function, base.type, base.offset},
			base.steps || base.indexed, typed);
	return why;
}

static const char *find(struct body *body, const struct code_bytes *code, __u64 address, struct typed *typed)
{
	const char *why = TYPE_NO_CODE;
	__u64 low, high;
	const __u8 *bytes;
	size_t steps;

	if (!lines_function(body->lines, address, &body->function) ||
	    !range_of(&body->function, address, &low, &high))
		return TYPE_UNDESCRIBED;
	bytes = high - low <= FUNCTION_MOST ? bytes_at(code, low, high) : NULL;
	if (!bytes)
		return TYPE_NO_CODE;
	instructions_read(bytes, high - low, low, &body->list, &body->nr);
	mark_targets(body);
	steps = body->lines->steps;
	body->lines->steps = ACCESS_STEPS;
	for (size_t i = 0; i < body->nr; i++)
		if (body->list[i].address == address)
			why = look_at(body, i, typed);
	body->lines->steps = steps;
	free(body->list);
	return why;
}

const char *type_of_access(struct lines *lines, const struct code_bytes *code, __u64 address,
			   struct typed *typed)
{
	struct body body = {.lines = lines, .code = code};

	return find(&body, code, address, typed);
}
