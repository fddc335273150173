// SPDX-License-Identifier: GPL-2.0-only
#include "confined/access.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "confined/instructions.h"
#include "confined/lines_inside.h"
#include "confined/locals.h"
#include "confined/scope.h"
#include "naming/untyped.h"

#define REGISTERS      16
#define FUNCTION_MOST  (1 << 15) /* bytes; more would take too long for a name */
#define FOLLOWED_MOST  16	 /* registers that are followed one after the other */
#define MULTIPLES_MOST 8	 /* each may be a sum of two others */
#define FORKS_MOST     8	 /* that lead into each other's ways */
#define MEETINGS_MOST  4	 /* of ways that are followed one after the other */
#define POINTS_MOST    32
#define ACCESS_STEPS   1000000
#define FOLLOW_STEPS   1000 /* what a register costs that is followed: a sum, or a choice, has two */

/* A function, or the part of one, with its instructions. */
struct body {
	struct lines *lines;
	const struct code_bytes *code;
	Dwarf_Die function;
	bool go; /* it has the goroutine in a register */
	struct instruction *list;
	size_t nr;
	bool anywhere;		  /* it has a jump whose targets are not known */
	struct meeting *meetings; /* that are being followed, the last one first */
	struct meeting *same;	  /* that whose value is followed unchanged */
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
	__u64 stride;		      /* plus a multiple of this, if it is not 0 */
	__u64 apart;		      /* or plus this, if it is not 0 */
	Dwarf_Die variable, function; /* the variable that this is in: see struct in_variable */
};

/* Instructions at which several ways meet, and registers that have one value there. */
struct meeting {
	struct {
		size_t i;
		int reg;
	} points[POINTS_MOST];
	size_t nr;
	int depth;
	bool all; /* ways are asked until one differs, not only until one says something */
	bool known, differs;
	struct pointer pointer; /* if it is known */
	struct meeting *outer;
};

static const char SAME_VALUE[] = "same value"; /* nothing else than what the meeting has */

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

	if (!lines_location(die, DW_AT_location, &attribute))
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

static __u64 magnitude(__u64 distance)
{
	return (__s64)distance < 0 ? -distance : distance;
}

/* Whether a distance, of either sign, is a multiple of a size. */
static bool is_multiple(__u64 distance, __u64 size)
{
	return size && magnitude(distance) % size == 0;
}

/* Whether data of a type, at an offset, are whole elements away from what a pointer leads to. */
static bool are_elements(struct lines *lines, const struct pointer *pointer, Dwarf_Die type, __u64 offset)
{
	return type_is_same(lines, pointer->type, type) &&
	       is_multiple(pointer->offset - offset, type_stride(lines, &type));
}

static void consider(void *context, Dwarf_Die *die, Dwarf_Die *in)
{
	struct in_register *found = context;
	struct lines *lines = found->body->lines;
	Dwarf_Die type = *die, whole, to;
	__u64 inside, offset;

	if (!scope_is_variable(die) || !variable_in(die, found->address, found->reg, &inside, &offset))
		return;
	found->any = true;
	if (!type_of_entry(lines, &type))
		return;
	whole = type;
	if (type_of_begin(lines, &type, inside))
		return;
	to = type;
	/* A number, or a pointer to void or to a class without members, may be another variable's value, too.
	 */
	if (!is_pointer(&type) || !lines_follow(lines, &to, DW_AT_type) || type_is_empty(lines, to))
		return;
	type_of_derived(lines, whole, &to);
	/* An iterator may lead to the next element already. */
	if (found->points && are_elements(lines, &found->pointer, to, -offset)) {
		found->pointer.steps |= found->pointer.offset != -offset;
		return;
	}
	/* What is inlined may have a pointer to a part of the data. */
	if (found->points && type_has_at(lines, found->pointer.type, found->pointer.offset + offset, to))
		return;
	found->differ |= found->points &&
			 !type_has_at(lines, to, -offset - found->pointer.offset, found->pointer.type);
	found->points = true;
	found->pointer = (struct pointer){.type = to, .offset = -offset};
}

/* --- Go ---------------------------------------------------------------------------------------- */

#define REGISTER_GOROUTINE 14

/* From 1.17 on Go passes arguments and results in registers, and has one for the goroutine. */
static bool passes_in_registers(const struct lines *lines, Dwarf_Die function)
{
	Dwarf_Die unit;
	const char *producer = NULL;

	if (dwarf_diecu(&function, &unit, NULL, NULL))
		producer = lines_text(lines, &unit, DW_AT_producer);
	return producer && strstr(producer, "regabi");
}

/* What a call may write: all but the stack's registers, and that of the goroutine. Some of the runtime's
 * functions keep most. */
static __u32 written_by_go(const struct body *body, __u64 callee)
{
	static const struct {
		const char *begin;
		__u32 writes;
	} keeping[] = {
		{"runtime.gcWriteBarrier", 1U << 11 /* r11 */},
		{"runtime.duffzero", 1U << 5 /* rdi */},
		{"runtime.duffcopy", 1U << 4 | 1U << 5 /* rsi, rdi */},
	};
	const char *name = NULL;
	Dwarf_Die function;

	if (callee && lines_function(body->lines, callee, &function))
		name = lines_text(body->lines, &function, DW_AT_name);
	for (size_t i = 0; name && i < ARRAY_SIZE(keeping); i++)
		if (!strncmp(name, keeping[i].begin, strlen(keeping[i].begin)))
			return keeping[i].writes;
	return (1U << REGISTERS) - 1 -
	       (1U << REGISTER_STACK | 1U << REGISTER_FRAME | (__u32)body->go << REGISTER_GOROUTINE);
}

static void take_go_s_calls(struct body *body)
{
	if (!type_is_go(body->function))
		return;
	body->go = passes_in_registers(body->lines, body->function);
	for (size_t i = 0; i < body->nr; i++)
		if (body->list[i].kind == INSTRUCTION_CALL)
			body->list[i].writes = written_by_go(body, body->list[i].callee);
}

/* Whether a register has the goroutine: nothing else is there but in code that puts it there. */
static bool has_goroutine(const struct body *body, int reg)
{
	if (!body->go || reg != REGISTER_GOROUTINE)
		return false;
	for (size_t i = 0; i < body->nr; i++)
		if (body->list[i].writes & 1U << reg)
			return false;
	return true;
}

/* --- following --------------------------------------------------------------------------------- */

static bool is_jumped_to(const struct body *body, size_t i)
{
	return body->list[i].target;
}

/* Spends some of the steps that an access may take. Returns false if none are left. */
static bool spend(const struct body *body, size_t steps)
{
	struct lines *lines = body->lines;

	lines->steps -= steps < lines->steps ? steps : lines->steps;
	return lines->steps;
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

/* The first of the jumps from before the i-th instruction to it, or to what is between `from` and it; `from`
 * if there is none, `i` if one may lead there from behind. */
static size_t first_jump(const struct body *body, size_t from, size_t i)
{
	__u64 low = body->list[from].address, high = body->list[i].address;
	size_t first = from;

	for (size_t n = 0; n < body->nr; n++) {
		const struct instruction *at = &body->list[n];

		if (at->jumps_anywhere)
			return i;
		if (at->jump != high && (at->jump <= low || at->jump > high))
			continue;
		if (n >= i)
			return i;
		first = n < first ? n : first;
	}
	return first;
}

/* The jump from which all ways to the i-th instruction lead over code that does not write the register; `i`
 * itself if there is none. */
static size_t forked_at(const struct body *body, size_t i, int reg)
{
	size_t from = i, behind;
	int depth = 0;

	do {
		behind = from;
		from = first_jump(body, behind, i);
	} while (from < behind && ++depth < FORKS_MOST && spend(body, body->nr));
	if (from != behind)
		return i;
	for (size_t n = from; n < i; n++)
		if (body->list[n].writes & 1U << reg)
			return i;
	return from;
}

/* The instruction before the i-th, after which the register has the same but for steps of a constant size;
 * `i` itself if there may be several, or none. */
static size_t step_back(const struct body *body, size_t i, int reg, __u64 *step)
{
	size_t from = i;

	*step = 0;
	if (!i)
		return i;
	if (body->list[i - 1].ends)
		from = jumped_from(body, i);
	else if (!is_jumped_to(body, i) || loop_keeps(body, i, reg, step))
		return i - 1;
	return from == i ? forked_at(body, i, reg) : from;
}

static const char *follow_register(struct body *body, size_t i, int reg, struct pointer *found, int depth);

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

/* Whether what is added to a pointer leads to other elements like that which it points to. A variable has
 * none behind it. */
static bool counts_elements(struct body *body, struct pointer *pointer)
{
	__u64 element;

	if (!pointer->stride)
		return true;
	if (!pointer->variable.addr &&
	    is_multiple(pointer->stride, type_stride(body->lines, &pointer->type))) {
		pointer->steps = true;
		return true;
	}
	element = type_element(body->lines, pointer->type, pointer->offset);
	return element && pointer->stride % element == 0;
}

/* Whether the other place that a pointer may point to is in the same variable of threads. */
static bool is_beside(struct body *body, const struct pointer *pointer, const struct in_variable *in)
{
	__u64 at = pointer->offset + pointer->apart + body->code->thread_size;
	struct in_variable other;

	return !pointer->apart ||
	       (!thread_variable_at(body->lines, at, &other) && other.die.addr == in->die.addr);
}

/* Makes the begin of threads' variables one of them. Fails if that, or data, are not what is pointed to. */
static const char *settle_pointer(struct body *body, struct pointer *pointer)
{
	struct in_variable in;
	const char *why;

	if (pointer->kind == NUMBER)
		return TYPE_NO_POINTER;
	if (pointer->kind == TO_DATA)
		return counts_elements(body, pointer) ? NULL : TYPE_NO_POINTER;
	pointer->kind = TO_DATA;
	why = thread_variable_at(body->lines, pointer->offset + body->code->thread_size, &in);
	if (why)
		return TYPE_UNDESCRIBED;
	if (!is_beside(body, pointer, &in))
		return TYPE_NO_POINTER;
	point_into(pointer, &in);
	return counts_elements(body, pointer) ? NULL : TYPE_NO_POINTER;
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

/* The other place that a pointer may point to, in the same data. */
static struct pointer other_of(const struct pointer *pointer)
{
	struct pointer other = *pointer;

	other.offset += pointer->apart;
	return other;
}

/* The type of what begins where a pointer points to. */
static const char *begin_of(struct body *body, const struct pointer *pointer, Dwarf_Die *type)
{
	struct pointer other = other_of(pointer);
	Dwarf_Die found = pointer->type;
	const char *why;

	*type = pointer->type;
	why = type_of_begin(body->lines, type, offset_of(body, pointer));
	if (why || !pointer->apart)
		return why;
	why = type_of_begin(body->lines, &found, offset_of(body, &other));
	return why ? why : type_is_same(body->lines, *type, found) ? NULL : TYPE_NO_POINTER;
}

/* What a pointer points to that is loaded from where another one points to. */
static const char *loaded(struct body *body, struct pointer *from, struct pointer *found)
{
	Dwarf_Die type;
	const char *why = settle_pointer(body, from);

	if (!why)
		why = begin_of(body, from, &type);
	return why ? why : pointee(body, type, found);
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

/* --- multiples --------------------------------------------------------------------------------- */

/* A number that is `offset` plus `factor` times another one, which is the same for all that have the same
 * instruction, `from`, and register: what that had before it. */
struct multiple {
	size_t from;
	int reg;
	__u64 factor, offset;
};

static __u64 common_factor(__u64 a, __u64 b)
{
	while (b) {
		__u64 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static struct multiple scale_multiple(struct multiple a, __u64 factor)
{
	a.factor *= factor;
	a.offset *= factor;
	return a;
}

static struct multiple add_multiples(struct multiple a, struct multiple b, struct multiple own)
{
	own.offset = a.offset + b.offset;
	if (a.from == b.from && a.reg == b.reg) {
		own.from = a.from;
		own.reg = a.reg;
		own.factor = a.factor + b.factor;
		return own;
	}
	own.factor = common_factor(magnitude(a.factor), magnitude(b.factor));
	return own;
}

static struct multiple multiple_of(const struct body *body, size_t i, int reg, int depth);

static struct multiple address_multiple(const struct body *body, size_t i, struct multiple own, int depth)
{
	const struct memory_operand *memory = &body->list[i].memory;
	struct multiple found;

	if (memory->fixed || memory->thread || memory->index < 0)
		return own;
	found = scale_multiple(multiple_of(body, i, memory->index, depth + 1), memory->scale);
	if (memory->base >= 0)
		found = add_multiples(multiple_of(body, i, memory->base, depth + 1), found, own);
	found.offset += memory->offset;
	return found;
}

/* What a register is a multiple of after the i-th instruction has written it. */
static struct multiple written_multiple(const struct body *body, size_t i, int reg, int depth)
{
	const struct instruction *at = &body->list[i];
	struct multiple own = {i + 1, reg, 1, 0}, found;

	switch (at->kind) {
	case INSTRUCTION_COPY:
		return multiple_of(body, i, at->source, depth + 1);
	case INSTRUCTION_NUMBER:
		own.factor = 0;
		own.offset = at->memory.offset;
		return own;
	case INSTRUCTION_ADD:
		found = multiple_of(body, i, reg, depth + 1);
		found.offset += at->memory.offset;
		return found;
	case INSTRUCTION_PRODUCT:
		return scale_multiple(at->source < 0 ? own : multiple_of(body, i, at->source, depth + 1),
				      at->factor);
	case INSTRUCTION_SUM:
		found = multiple_of(body, i, reg, depth + 1);
		return at->source < 0
			       ? own
			       : add_multiples(found, multiple_of(body, i, at->source, depth + 1), own);
	case INSTRUCTION_ADDRESS:
		return address_multiple(body, i, own, depth);
	default:
		return own;
	}
}

/* What a register is a multiple of before the i-th instruction. */
static struct multiple multiple_of(const struct body *body, size_t i, int reg, int depth)
{
	struct multiple own = {i, reg, 1, 0}, found;
	__u64 step = 0;
	size_t before;

	if (depth > MULTIPLES_MOST)
		return own;
	while (!step && spend(body, is_jumped_to(body, own.from) ? body->nr : 1)) {
		before = step_back(body, own.from, reg, &step);
		if (before == own.from)
			break;
		if (body->list[before].writes & 1U << reg)
			found = written_multiple(body, before, reg, depth);
		else if (step)
			found = multiple_of(body, before, reg, depth + 1);
		else {
			own.from = before;
			continue;
		}
		return step ? add_multiples(found, (struct multiple){own.from, -1, step, 0}, own) : found;
	}
	return own;
}

/* Adds `index` times `scale` to a pointer. */
static void add_elements(struct body *body, size_t i, int index, int scale, struct pointer *pointer)
{
	struct multiple added = scale_multiple(multiple_of(body, i, index, 0), scale);

	pointer->offset += added.offset;
	pointer->stride = common_factor(magnitude(added.factor), pointer->stride);
	pointer->indexed = true;
}

/* --- operands ---------------------------------------------------------------------------------- */

static struct locals locals_of(struct body *body, size_t i)
{
	return (struct locals){body->lines, &body->code->frames, &body->function, body->list[i].address};
}

/* What an operand without an index is the address of. */
static const char *place_of_operand(struct body *body, size_t i, const struct memory_operand *memory,
				    struct pointer *found, int depth)
{
	struct locals locals = locals_of(body, i);
	struct in_variable in;
	const char *why = NULL;
	__u64 distance;

	*found = (struct pointer){.offset = 0};
	if (memory->thread) {
		if (memory->base >= 0)
			why = follow_register(body, i, memory->base, found, depth + 1);
		else
			found->kind = NUMBER;
		if (why || found->kind != NUMBER)
			return why ? why : TYPE_NO_POINTER;
		found->kind = TO_THREAD;
		found->offset += memory->offset;
		return NULL;
	}
	if (memory->fixed) {
		why = variable_at(body->lines, memory->offset, &in);
		if (!why)
			point_into(found, &in);
		return why;
	}
	if (memory->base == REGISTER_STACK || locals_distance(&locals, memory->base, &distance)) {
		why = locals_at(&locals, memory->base, memory->offset, &in);
		if (!why)
			point_into(found, &in);
		return why;
	}
	if (memory->base < 0)
		return TYPE_NO_REGISTER;
	why = follow_register(body, i, memory->base, found, depth + 1);
	found->offset += memory->offset;
	return why;
}

/* What the i-th instruction's operand is the address of: a pointer, and perhaps an index that counts
 * elements. One without a scale may be the pointer itself. */
static const char *operand(struct body *body, size_t i, const struct memory_operand *memory,
			   struct pointer *found, int depth)
{
	struct memory_operand plain = *memory;
	struct pointer other;
	const char *why;

	plain.index = -1;
	why = place_of_operand(body, i, &plain, found, depth);
	if (memory->index < 0)
		return why;
	if (!why) {
		add_elements(body, i, memory->index, memory->scale, found);
		return NULL;
	}
	plain.base = memory->index;
	if (memory->scale != 1 || memory->thread || place_of_operand(body, i, &plain, &other, depth))
		return why;
	*found = other;
	if (memory->base >= 0)
		add_elements(body, i, memory->base, 1, found);
	return NULL;
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

/* The type of what a call has left in the first register for results. */
static bool returned(struct body *body, size_t i, Dwarf_Die *type)
{
	return i + 1 < body->nr &&
	       scope_returned(body->lines, &body->function, body->list[i + 1].address, body->list[i].callee,
			      type) &&
	       type_is_in_register(body->lines, *type) && !type_of_begin(body->lines, type, 0);
}

/* What is added to a register by what is in memory: a distance, or the thread pointer, or a pointer. */
static const char *added(struct body *body, size_t i, struct pointer *found, int depth)
{
	const struct memory_operand *memory = &body->list[i].memory;
	struct pointer base;
	const char *why;

	if (memory->thread && memory->base < 0 && memory->index < 0 && !memory->offset) {
		*found = (struct pointer){.kind = TO_THREAD};
		return NULL;
	}
	if (from_slot(body, memory, false, found))
		return NULL;
	why = operand(body, i, memory, &base, depth);
	return why ? why : loaded(body, &base, found);
}

/* Adds two, one of which is a number, perhaps with an index, or one of two numbers. */
static const char *take_sum(struct pointer *found, const struct pointer *more)
{
	struct pointer both = found->kind == NUMBER ? *more : *found;

	if ((found->kind == NUMBER) == (more->kind == NUMBER) || (found->apart && more->apart))
		return TYPE_NO_POINTER;
	both.offset = found->offset + more->offset;
	both.apart = found->apart + more->apart;
	both.stride = common_factor(found->stride, more->stride);
	both.indexed = found->indexed || more->indexed;
	*found = both;
	return NULL;
}

/* What a sum is that has the thread pointer, and a distance from it; or a pointer, and an index that counts
 * elements. */
static const char *sum(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	const struct instruction *at = &body->list[i];
	struct pointer more = {0};
	const char *why = follow_register(body, i, reg, found, depth + 1), *why_more;

	why_more = at->source >= 0 ? follow_register(body, i, at->source, &more, depth + 1)
				   : added(body, i, &more, depth);
	if (why && why_more)
		return why;
	if (why || why_more) {
		if (why)
			*found = more;
		else if (at->source < 0)
			return why_more;
		add_elements(body, i, why ? reg : at->source, 1, found);
		return NULL;
	}
	return take_sum(found, &more);
}

/* --- what the compiler keeps on the stack ------------------------------------------------------- */

/* What is in a register or a slot: a value of a type, or a pointer to it. */
struct value {
	Dwarf_Die type;
	bool points, known;
};

/* Where the i-th instruction accesses the stack, from the frame. */
static bool slot_of(struct body *body, size_t i, __u64 *at)
{
	const struct instruction *own = &body->list[i];
	struct locals locals = locals_of(body, i);

	if (!own->accesses || own->memory.thread || own->memory.fixed || own->memory.index >= 0 ||
	    own->memory.base < 0 || !locals_distance(&locals, own->memory.base, at))
		return false;
	*at += own->memory.offset;
	return true;
}

/* Whether the i-th instruction saves a register of the caller's, or restores it. */
static bool keeps_callers(struct body *body, size_t i)
{
	struct locals locals = locals_of(body, i);
	__u64 at;

	if (!slot_of(body, i, &at))
		return false;
	if (body->list[i].stores && i + 1 < body->nr)
		locals.address = body->list[i + 1].address;
	return locals_is_callers(&locals, at);
}

/* What writes to a slot. */
struct stores {
	size_t *list, nr, room;
	bool changes; /* its value is calculated with, too */
};

enum overlap {
	APART,
	SAME,
	ACROSS,
};

#define WIDTH_MOST 64 /* of an access that is wider than a register */

/* How what the n-th instruction writes lies to a slot. */
static enum overlap overlap_with_slot(struct body *body, size_t n, __u64 slot, unsigned int width)
{
	const struct instruction *at = &body->list[n];
	__u64 other;

	if (!at->stores || !slot_of(body, n, &other) ||
	    (other - slot >= width && slot - other >= (at->width ? at->width : WIDTH_MOST)))
		return APART;
	return other == slot && at->width == width ? SAME : ACROSS;
}

static void add_store(struct body *body, struct stores *stores, size_t n)
{
	stores->changes |= body->list[n].kind != INSTRUCTION_STORE;
	if (body->list[n].kind != INSTRUCTION_STORE)
		return;
	stores->list = xroom(stores->list, stores->nr, &stores->room, sizeof(*stores->list));
	stores->list[stores->nr++] = n;
}

/* Finds the last store, in straight code, to what the i-th instruction loads from the stack, or else all of
 * them in the function. Returns false if there are none, or if something else writes to a part of it. The
 * caller frees the list. */
static bool find_stores(struct body *body, size_t i, struct stores *stores)
{
	unsigned int width = body->list[i].width;
	enum overlap how;
	__u64 slot;

	*stores = (struct stores){.nr = 0};
	if (!slot_of(body, i, &slot) || !width || !spend(body, body->nr))
		return false;
	for (size_t n = i; n && !is_jumped_to(body, n) && !body->list[n - 1].ends; n--) {
		how = overlap_with_slot(body, n - 1, slot, width);
		if (how == SAME && body->list[n - 1].kind == INSTRUCTION_STORE) {
			add_store(body, stores, n - 1);
			return true;
		}
		if (how != APART)
			break;
	}
	for (size_t n = 0; n < body->nr; n++) {
		how = overlap_with_slot(body, n, slot, width);
		if (how == ACROSS)
			return false;
		if (how == SAME)
			add_store(body, stores, n);
	}
	return stores->nr;
}

/* Takes another pointer that may be there instead. Returns false if they don't lead to the same place of the
 * same type. The variable is forgotten if they have two. */
static bool take_other(const struct body *body, struct pointer *found, const struct pointer *other)
{
	if (found->variable.addr != other->variable.addr || found->function.addr != other->function.addr)
		found->variable.addr = NULL;
	return found->kind == other->kind && found->offset == other->offset && found->steps == other->steps &&
	       found->indexed == other->indexed && found->stride == other->stride &&
	       found->apart == other->apart &&
	       (found->kind != TO_DATA || type_is_same(body->lines, found->type, other->type));
}

/* The pointer that the i-th instruction loads from a slot that no variable describes. */
static const char *kept_pointer(struct body *body, size_t i, struct pointer *found, int depth)
{
	bool known = false, differ = depth > FOLLOWED_MOST;
	struct pointer one;
	struct stores stores;

	if (find_stores(body, i, &stores) && !stores.changes)
		for (size_t n = 0; n < stores.nr && !differ; n++) {
			int reg = body->list[stores.list[n]].source;

			if (reg < 0)
				continue;
			differ = follow_register(body, stores.list[n], reg, &one, depth + 1) ||
				 (known && !take_other(body, found, &one));
			*found = known ? *found : one;
			known = true;
		}
	free(stores.list);
	return known && !differ ? NULL : TYPE_STACK;
}

/* Takes what is known of a value, if that is not known to be another one. Returns false if it is. */
static bool take_value(const struct body *body, struct value *value, const struct value *one)
{
	if (value->known)
		return value->points == one->points && type_is_same(body->lines, value->type, one->type);
	*value = *one;
	return true;
}

/* The type of what a place has that the i-th instruction accesses. */
static bool place_value(struct body *body, size_t i, struct value *value, int depth)
{
	struct pointer base;

	if (operand(body, i, &body->list[i].memory, &base, depth) || settle_pointer(body, &base))
		return false;
	*value = (struct value){.known = true};
	return !begin_of(body, &base, &value->type) &&
	       type_size(body->lines, &value->type) == body->list[i].width;
}

/* The type of the variable to which a register is stored from the i-th instruction on, before it is written.
 */
static bool stored_value(struct body *body, size_t i, int reg, struct value *value, int depth)
{
	for (; i < body->nr && !is_jumped_to(body, i); i++) {
		if (body->list[i].kind == INSTRUCTION_STORE && body->list[i].source == reg &&
		    place_value(body, i, value, depth))
			return true;
		if (body->list[i].writes & 1U << reg || body->list[i].ends)
			break;
	}
	return false;
}

static bool slot_value(struct body *body, size_t i, struct value *value, int depth);

/* The type of what the n-th instruction has written to a register. */
static bool written_value(struct body *body, size_t n, int reg, struct value *value, int depth)
{
	const struct instruction *at = &body->list[n];

	switch (at->kind) {
	case INSTRUCTION_LOAD:
	case INSTRUCTION_PART:
		return place_value(body, n, value, depth) || slot_value(body, n, value, depth + 1);
	case INSTRUCTION_CALL:
		value->points = false;
		value->known = true;
		return !reg && returned(body, n, &value->type);
	default:
		return false;
	}
}

/* The type of what a register has that the i-th instruction stores. */
static bool source_value(struct body *body, size_t i, struct value *value, int depth)
{
	int reg = body->list[i].source;
	struct pointer pointer;
	size_t n = i;

	for (; n && !is_jumped_to(body, n) && !body->list[n - 1].ends; n--) {
		const struct instruction *at = &body->list[n - 1];

		if (at->kind == INSTRUCTION_STORE && at->source == reg &&
		    place_value(body, n - 1, value, depth))
			return true;
		if (!(at->writes & 1U << reg))
			continue;
		if (at->kind != INSTRUCTION_COPY) {
			if (written_value(body, n - 1, reg, value, depth))
				return true;
			break;
		}
		reg = at->source;
	}
	if (stored_value(body, i + 1, body->list[i].source, value, depth))
		return true;
	if (body->list[i].width != sizeof(__u64) ||
	    follow_register(body, i, body->list[i].source, &pointer, depth + 1) ||
	    settle_pointer(body, &pointer) || pointer.apart || offset_of(body, &pointer))
		return false;
	*value = (struct value){.type = pointer.type, .points = true, .known = true};
	return true;
}

/* The type of what the loads of a slot store to variables. */
static bool loaded_value(struct body *body, __u64 slot, unsigned int width, struct value *value, int depth)
{
	struct value one;
	__u64 other;

	for (size_t n = 0; n < body->nr; n++) {
		const struct instruction *at = &body->list[n];

		if ((at->kind != INSTRUCTION_LOAD && at->kind != INSTRUCTION_PART) || at->width != width ||
		    !slot_of(body, n, &other) || other != slot)
			continue;
		for (int reg = 0; reg < REGISTERS; reg++)
			if (at->writes == 1U << reg && stored_value(body, n + 1, reg, &one, depth) &&
			    !take_value(body, value, &one))
				return false;
	}
	return value->known;
}

/* The type of what the i-th instruction loads from a slot that no variable describes. */
static bool slot_value(struct body *body, size_t i, struct value *value, int depth)
{
	bool all = depth <= FOLLOWED_MOST;
	struct stores stores;
	struct value one;
	__u64 slot;

	*value = (struct value){.known = false};
	if (!find_stores(body, i, &stores) || !all || !slot_of(body, i, &slot)) {
		free(stores.list);
		return false;
	}
	for (size_t n = 0; n < stores.nr && all; n++)
		if (body->list[stores.list[n]].source >= 0)
			all = source_value(body, stores.list[n], &one, depth + 1) &&
			      take_value(body, value, &one);
	/* What was calculated is known by where it goes. */
	if (!all && stores.nr == 1)
		all = loaded_value(body, slot, body->list[i].width, value, depth + 1);
	free(stores.list);
	return all && value->known &&
	       (value->points || type_size(body->lines, &value->type) == body->list[i].width);
}

/* What a register has that has one of two values: two places in the same data. */
static const char *chosen_pointer(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	struct pointer other;
	const char *why = follow_register(body, i, reg, found, depth + 1);

	if (!why)
		why = follow_register(body, i, body->list[i].source, &other, depth + 1);
	if (why || found->apart || other.apart)
		return TYPE_NO_POINTER;
	other.apart = other.offset - found->offset;
	found->apart = other.apart;
	other.offset = found->offset;
	return take_other(body, found, &other) ? NULL : TYPE_NO_POINTER;
}

/* What a register has after the i-th instruction has written it. */
static const char *made_pointer(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	const struct instruction *at = &body->list[i];
	struct memory_operand copied = {.base = at->source, .index = -1};
	struct pointer base;
	Dwarf_Die type;
	const char *why;

	switch (at->kind) {
	case INSTRUCTION_COPY:
		return operand(body, i, &copied, found, depth);
	case INSTRUCTION_CHOICE:
		return chosen_pointer(body, i, reg, found, depth);
	case INSTRUCTION_NUMBER:
		*found = (struct pointer){.kind = NUMBER, .offset = at->memory.offset};
		return NULL;
	case INSTRUCTION_ADD:
		why = follow_register(body, i, reg, found, depth + 1);
		found->offset += at->memory.offset;
		return why;
	case INSTRUCTION_SUM:
		return sum(body, i, reg, found, depth);
	case INSTRUCTION_ADDRESS:
		if (at->memory.base < 0 && !at->memory.fixed)
			return TYPE_NO_POINTER;
		return operand(body, i, &at->memory, found, depth);
	case INSTRUCTION_LOAD:
		if (from_slot(body, &at->memory, false, found))
			return NULL;
		why = operand(body, i, &at->memory, &base, depth);
		if (why && !strcmp(why, TYPE_STACK))
			return kept_pointer(body, i, found, depth + 1);
		/* The thread pointer points to itself. */
		if (!why && base.kind == TO_THREAD && !base.offset) {
			*found = base;
			return NULL;
		}
		return why ? why : loaded(body, &base, found);
	case INSTRUCTION_CALL:
		if (!reg && asks_for_place(body, i, found))
			return NULL;
		return reg || !returned(body, i, &type) ? TYPE_NO_POINTER : pointee(body, type, found);
	default:
		return TYPE_NO_POINTER;
	}
}

/* The same. What is not copied is another value than that of the meeting that is followed. */
static const char *written_pointer(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	struct meeting *same = body->same;
	const char *why;

	if (body->list[i].kind != INSTRUCTION_COPY)
		body->same = NULL;
	why = made_pointer(body, i, reg, found, depth);
	body->same = same;
	return why;
}

/* What a register has behind the n-th instruction, from which a way leads to where others do. */
static const char *follow_way(struct body *body, size_t n, int reg, struct pointer *found, int depth)
{
	return body->list[n].writes & 1U << reg ? written_pointer(body, n, reg, found, depth + 1)
						: follow_register(body, n, reg, found, depth + 1);
}

/* Whether one way leads to another element like that of the others, as a pointer does that steps through an
 * array. */
static bool steps_on(const struct body *body, const struct pointer *pointer, const struct pointer *one)
{
	return pointer->kind == TO_DATA && one->kind == TO_DATA && !pointer->variable.addr &&
	       !one->variable.addr && pointer->indexed == one->indexed && pointer->stride == one->stride &&
	       pointer->apart == one->apart && are_elements(body->lines, pointer, one->type, one->offset);
}

/* Takes what one way says. Nothing is accessed through a null pointer. */
static void take_way(const struct body *body, struct meeting *meeting, const char *why,
		     const struct pointer *one)
{
	if (why == SAME_VALUE || (!why && one->kind == NUMBER && !one->offset))
		return;
	if (why)
		meeting->differs = true;
	else if (!meeting->known)
		meeting->pointer = *one;
	else if (steps_on(body, &meeting->pointer, one))
		meeting->pointer.steps |= one->steps || one->offset != meeting->pointer.offset;
	else
		meeting->differs |= !take_other(body, &meeting->pointer, one);
	meeting->known |= !why;
}

static bool is_done(const struct meeting *meeting)
{
	return meeting->all ? meeting->differs : meeting->known;
}

/* Adds an instruction at which several ways meet, and what they say. */
static void add_point(struct body *body, struct meeting *meeting, size_t i, int reg)
{
	const struct instruction *list = body->list;
	struct pointer one;
	const char *why;

	if (!i || meeting->nr == POINTS_MOST || body->anywhere || !is_jumped_to(body, i) ||
	    !spend(body, body->nr)) {
		meeting->differs = true;
		return;
	}
	meeting->points[meeting->nr].i = i;
	meeting->points[meeting->nr++].reg = reg;
	for (size_t n = 0; n < body->nr && !is_done(meeting); n++)
		if (list[n].jump == list[i].address || (n + 1 == i && !list[n].ends)) {
			why = follow_way(body, n, reg, &one, meeting->depth);
			take_way(body, meeting, why, &one);
		}
}

static bool has_point(const struct meeting *meeting, size_t i, int reg)
{
	for (size_t n = 0; n < meeting->nr; n++)
		if (meeting->points[n].i == i && meeting->points[n].reg == reg)
			return true;
	return false;
}

/* What a register has before the i-th instruction, if it is the same on all ways that lead there. What the
 * first of them says is taken for what it has, until all that can be made of it says the same. */
static const char *follow_ways(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	struct meeting own = {.depth = depth, .outer = body->meetings}, *same = body->same;
	int nr = 0;

	for (const struct meeting *at = body->meetings; at; at = at->outer, nr++) {
		if (!has_point(at, i, reg))
			continue;
		*found = at->pointer;
		return at == same ? SAME_VALUE : at->known ? NULL : TYPE_NO_REGISTER;
	}
	if (same) {
		add_point(body, same, i, reg);
		return SAME_VALUE;
	}
	if (nr == MEETINGS_MOST)
		return TYPE_NO_REGISTER;
	body->meetings = body->same = &own;
	add_point(body, &own, i, reg);
	own.nr = 0;
	own.differs = false;
	own.all = true;
	if (own.known)
		add_point(body, &own, i, reg);
	body->meetings = own.outer;
	body->same = NULL;
	*found = own.pointer;
	return !own.known ? TYPE_NO_REGISTER : own.differs ? TYPE_NO_POINTER : NULL;
}

/* What a register has before the i-th instruction. */
static const char *follow_steps(struct body *body, size_t i, int reg, struct pointer *found, int depth,
				__u64 *stepped)
{
	__u64 step;
	size_t before;

	*found = (struct pointer){.offset = 0};
	if (depth > FOLLOWED_MOST || !spend(body, FOLLOW_STEPS))
		return TYPE_NO_POINTER;
	if (has_goroutine(body, reg))
		return type_of_goroutine(body->lines, &found->type) ? NULL : TYPE_NO_REGISTER;
	for (;;) {
		struct in_register variables = {body, body->list[i].address, reg, .any = false};

		scope_each(body->lines, &body->function, variables.address, consider, &variables);
		/* Two variables may share a register, as one is a copy of the other; types that differ are
		 * casts, and which is right is not known. */
		if (variables.points) {
			*found = variables.pointer;
			return variables.differ ? TYPE_NO_POINTER : NULL;
		}
		if (!spend(body, is_jumped_to(body, i) ? body->nr : 1))
			return TYPE_NO_POINTER;
		before = step_back(body, i, reg, &step);
		if (before == i)
			return variables.any ? TYPE_NO_POINTER : follow_ways(body, i, reg, found, depth);
		*stepped = step ? step : *stepped;
		i = before;
		if (body->list[i].writes & 1U << reg)
			return written_pointer(body, i, reg, found, depth);
	}
}

/* Steps lead to other data like that which is pointed to, or on through an array: settle_pointer() looks
 * which. */
static const char *follow_register(struct body *body, size_t i, int reg, struct pointer *found, int depth)
{
	__u64 stepped = 0;
	const char *why = follow_steps(body, i, reg, found, depth, &stepped);

	if (why == SAME_VALUE && stepped)
		body->same->differs = true;
	if (why || !stepped)
		return why;
	found->steps = is_multiple(stepped, type_stride(body->lines, &found->type));
	if (found->steps)
		return NULL;
	found->stride = common_factor(stepped, found->stride);
	found->indexed = true;
	return (__s64)stepped > 0 ? NULL : TYPE_NO_POINTER;
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
	for (size_t i = 0; i < body->nr; i++)
		body->anywhere |= body->list[i].jumps_anywhere;
	for (size_t i = 0; i < body->nr; i++) {
		size_t low = 0, high = body->nr;

		body->list[i].target |= body->anywhere;
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

/* The type and field of where a pointer points to; both fields if that may be either. */
static const char *type_of_places(struct body *body, const struct pointer *pointer, struct typed *typed)
{
	struct pointer one = *pointer, other = other_of(pointer);
	struct typed second;
	const char *why = type_of_pointed(body->lines, &one.type, offset_of(body, &one), typed);

	if (why || !pointer->apart)
		return why;
	why = type_of_pointed(body->lines, &other.type, offset_of(body, &other), &second);
	if (!why && strcmp(typed->field, second.field))
		type_add_field(typed, second.field);
	return why;
}

static const char *type_of_operand(struct body *body, size_t i, struct typed *typed)
{
	const struct memory_operand *memory = &body->list[i].memory;
	struct pointer base;
	struct value value;
	const char *why;

	if (!body->list[i].accesses)
		return body->list[i].of_stack ? TYPE_OF_STACK : TYPE_NO_OPERAND;
	if (memory->fixed)
		return type_of_variable(body->lines, memory->offset, typed);
	why = operand(body, i, memory, &base, 0);
	if (why && !strcmp(why, TYPE_STACK) && keeps_callers(body, i))
		return TYPE_OF_STACK;
	if (why && !strcmp(why, TYPE_STACK) && slot_value(body, i, &value, 0)) {
		if (!value.points)
			return type_of_field(body->lines, &value.type, 0, typed);
		type_of_pointer(body->lines, &value.type, typed);
		return NULL;
	}
	if (!why)
		why = settle_pointer(body, &base);
	if (!why && !base.variable.addr && is_cast(body, base.type, body->list[i].width))
		why = TYPE_NO_POINTER;
	if (!why)
		why = type_of_places(body, &base, typed);
	if (!why)
		type_name_variable(
			body->lines,
			&(struct in_variable){base.variable, base.function, base.type, base.offset},
			base.steps || base.indexed || base.apart, typed);
	return why;
}

static const char *type_at(struct body *body, const struct code_bytes *code, __u64 address,
			   struct typed *typed)
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
	take_go_s_calls(body);
	steps = body->lines->steps;
	body->lines->steps = ACCESS_STEPS;
	body->lines->furthest = dwarf_dieoffset(&body->function);
	for (size_t i = 0; i < body->nr; i++)
		if (body->list[i].address == address)
			why = type_of_operand(body, i, typed);
	/* What was found is not sure: variables may not have been looked at that are in the same register. */
	if (!body->lines->steps)
		why = TYPE_NO_CODE;
	body->lines->steps = steps;
	free(body->list);
	return why;
}

const char *type_of_access(struct lines *lines, const struct code_bytes *code, __u64 address,
			   struct typed *typed)
{
	struct body body = {.lines = lines, .code = code};

	return type_at(&body, code, address, typed);
}
