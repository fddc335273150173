// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses .eh_frame: see Linux Standard Base, Core, "DWARF Extensions". Its instructions: DWARF 5, 6.4.2.
 * libdw could read it, too, but takes three to four times as long: 6.2 instead of 1.6 ms for libc's.
 */
#include "confined/eh_frame.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/interned.h"
#include "base/memory.h"
#include "naming/image.h"

/* DWARF register numbers: System V ABI for x86-64, 3.6.2. */
enum { RBX = 3, RBP = 6, RSP = 7, RIP = 16 };

/* --- reading bytes ---------------------------------------------------------------------------- */

struct reader {
	const unsigned char *at, *end;
	bool broken; /* a read went beyond the end; it returned 0 */
};

static __u64 take(struct reader *reader, size_t size)
{
	__u64 value = 0;

	if (size > (size_t)(reader->end - reader->at)) {
		reader->broken = true;
		reader->at = reader->end;
		return 0;
	}
	memcpy(&value, reader->at, size); /* little endian */
	reader->at += size;
	return value;
}

static __s64 take_signed(struct reader *reader, size_t size)
{
	unsigned int unused = 64 - 8 * size;

	return (__s64)(take(reader, size) << unused) >> unused;
}

/* Reads a LEB128 number: seven bits per byte, lowest first; a signed one is sign-extended. */
static __u64 take_leb(struct reader *reader, bool has_sign)
{
	__u64 value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = take(reader, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (has_sign && byte & 0x40 && shift < 64)
		value |= ~0ULL << shift;
	return value;
}

static __u64 take_uleb(struct reader *reader)
{
	return take_leb(reader, false);
}

static __s64 take_sleb(struct reader *reader)
{
	return take_leb(reader, true);
}

/* Reads a length and returns a reader of the bytes that follow. */
static struct reader take_block(struct reader *reader)
{
	__u64 size = take_uleb(reader);
	struct reader block = {reader->at, reader->at, false};

	if (size > (size_t)(reader->end - reader->at)) {
		reader->broken = true;
		size = 0;
	}
	block.end = reader->at += size;
	return block;
}

/* --- what is known at an address -------------------------------------------------------------- */

/* An expression, if it has one of these forms. */
struct expression {
	enum { EXPRESSION_OTHER, EXPRESSION_SUM, EXPRESSION_AT_SUM, EXPRESSION_PLT } kind;
	__u64 base; /* a register */
	__s64 offset;
};

struct state {
	struct expression frame;
	struct saved {
		enum { SAME, UNDEFINED, AT_FRAME, AT_EXPRESSION, ELSEWHERE } how;
		__s64 offset;
		struct expression expression;
	} bx, bp, ip;
};

struct cie {
	size_t offset; /* offset in the section */
	__u64 code_factor;
	__s64 data_factor;
	__u8 pointers; /* DW_EH_PE_… */
	bool augmented, signal;
	bool usable;
	struct state initial;
};

/* A row as it is first read. The rows of a function are adjacent. */
struct early_row {
	__u32 address; /* minus section->low */
	__u32 rule;
};

struct function {
	__u32 begin, end; /* minus section->low */
	size_t first, nr; /* its rows */
};

struct parser {
	const struct unwind_section *section;
	struct cie *cies;
	size_t nr_cies, room_cies;
	struct function *functions;
	size_t nr_functions, room_functions;
	struct early_row *rows;
	size_t nr_rows, room_rows;
	struct interned rules; /* struct unwind_rule */
};

/* --- expressions ------------------------------------------------------------------------------ */

static bool take_base(struct reader *reader, struct expression *expression)
{
	__u64 op = take(reader, 1);

	if (op < DW_OP_breg0 || op > DW_OP_breg31)
		return false;
	expression->base = op - DW_OP_breg0;
	expression->offset = take_sleb(reader);
	return true;
}

/* Parses "rsp + 8 + (((rip & 15) >= k) << 3)", which ld writes for the procedure linkage table:
 * elf_x86_64_eh_frame_plt in binutils' bfd/elf64-x86-64.c. */
static bool take_plt(struct reader *reader, struct expression *expression)
{
	struct expression ip;
	__u64 least;

	if (expression->base != RSP || expression->offset != 8 || !take_base(reader, &ip) || ip.base != RIP ||
	    ip.offset || take(reader, 1) != DW_OP_lit15 || take(reader, 1) != DW_OP_and)
		return false;
	least = take(reader, 1);
	if (least < DW_OP_lit0 || least > DW_OP_lit15 || take(reader, 1) != DW_OP_ge ||
	    take(reader, 1) != DW_OP_lit3 || take(reader, 1) != DW_OP_shl || take(reader, 1) != DW_OP_plus)
		return false;
	expression->offset = least - DW_OP_lit0;
	return true;
}

static struct expression expression_of(struct reader block)
{
	struct expression expression = {0};
	struct reader rest;

	if (!take_base(&block, &expression))
		return (struct expression){0};
	rest = block;
	if (block.at == block.end)
		expression.kind = EXPRESSION_SUM;
	else if (take(&rest, 1) == DW_OP_deref && rest.at == rest.end)
		expression.kind = EXPRESSION_AT_SUM;
	else if (take_plt(&block, &expression) && block.at == block.end)
		expression.kind = EXPRESSION_PLT;
	if (block.broken || rest.broken)
		expression.kind = EXPRESSION_OTHER;
	return expression;
}

/* --- rules ------------------------------------------------------------------------------------ */

static bool fits(__s64 value, unsigned int bits)
{
	return value >= -(1LL << (bits - 1)) && value < 1LL << (bits - 1);
}

static const struct unwind_rule nothing = {.frame = FRAME_NONE};
static const struct unwind_rule other = {.frame = FRAME_OTHER};

/* The offset of rsp in the kernel's signal frame: in struct ucontext of arch/x86/include/uapi/asm/ucontext.h,
 * the gregs begin at 40, and rsp is the 16th of them. */
#define SIGNAL_RSP 160

static struct unwind_rule frame_of(const struct state *state, bool signal)
{
	const struct expression *frame = &state->frame;
	struct unwind_rule rule = {.offset = frame->offset};

	if (signal)
		return frame->kind == EXPRESSION_AT_SUM && frame->base == RSP && frame->offset == SIGNAL_RSP
			       ? (struct unwind_rule){.frame = FRAME_SIGNAL}
			       : other;
	if (!fits(frame->offset, 32))
		return other;
	if (frame->kind == EXPRESSION_SUM)
		rule.frame = frame->base == RSP	  ? FRAME_SP
			     : frame->base == RBP ? FRAME_BP
			     : frame->base == RBX ? FRAME_BX
						  : FRAME_OTHER;
	else if (frame->kind == EXPRESSION_AT_SUM)
		rule.frame = frame->base == RSP	  ? FRAME_AT_SP
			     : frame->base == RBP ? FRAME_AT_BP
						  : FRAME_OTHER;
	else
		rule.frame = frame->kind == EXPRESSION_PLT ? FRAME_PLT : FRAME_OTHER;
	return rule;
}

static void put_bp(struct unwind_rule *rule, const struct saved *bp)
{
	const struct expression *expression = &bp->expression;
	bool by_bp =
		bp->how == AT_EXPRESSION && expression->kind == EXPRESSION_SUM && expression->base == RBP;
	__s64 offset = by_bp ? expression->offset : bp->offset;

	if (bp->how == SAME) {
		rule->bp = BP_SAME;
	} else if ((bp->how == AT_FRAME || by_bp) && fits(offset, 16)) {
		rule->bp = by_bp ? BP_AT_BP : BP_AT_FRAME;
		rule->bp_offset = offset;
	} else {
		rule->bp = BP_LOST;
	}
}

static void put_bx(struct unwind_rule *rule, const struct saved *bx)
{
	if (bx->how == SAME)
		rule->bx = BX_SAME;
	else if (bx->how == AT_FRAME && bx->offset < 0 && bx->offset % 8 == 0 && fits(bx->offset / 8, 8))
		rule->bx = bx->offset / 8;
	else
		rule->bx = BX_LOST;
}

static struct unwind_rule rule_of(const struct state *state, const struct cie *cie)
{
	struct unwind_rule rule;

	if (state->ip.how == UNDEFINED)
		return (struct unwind_rule){.frame = FRAME_END};
	rule = frame_of(state, cie->signal);
	if (rule.frame == FRAME_OTHER || rule.frame == FRAME_SIGNAL)
		return rule.frame == FRAME_OTHER ? other : rule;
	if (state->ip.how != AT_FRAME || state->ip.offset != -8)
		return other;
	put_bp(&rule, &state->bp);
	put_bx(&rule, &state->bx);
	return rule;
}

/* --- instructions ----------------------------------------------------------------------------- */

/* The most states that a function may remember at a time; compilers use one or two. */
#define REMEMBERED_MOST 16

struct run {
	struct parser *parser;
	const struct cie *cie;
	struct reader reader;
	struct state state;
	struct state remembered[REMEMBERED_MOST];
	size_t nr_remembered;
	__u64 address; /* the address from which the current state applies */
	__u64 end;
	bool rows; /* rows are made: these are a function's instructions, not a CIE's */
};

static struct saved *saved_of(struct state *state, __u64 which)
{
	return which == RBX ? &state->bx : which == RBP ? &state->bp : which == RIP ? &state->ip : NULL;
}

static void set_saved(struct run *run, __u64 which, struct saved value)
{
	struct saved *saved = saved_of(&run->state, which);

	if (saved)
		*saved = value;
}

static void restore(struct run *run, __u64 which)
{
	struct state initial = run->cie->initial;
	const struct saved *saved = saved_of(&initial, which);

	if (saved)
		set_saved(run, which, *saved);
}

static void add_row(struct run *run)
{
	struct parser *parser = run->parser;
	struct unwind_rule rule = rule_of(&run->state, run->cie);
	__u32 number = interned_number(&parser->rules, &rule);
	struct function *function = &parser->functions[parser->nr_functions - 1];
	__u32 address = run->address - parser->section->low;
	struct early_row *last = function->nr ? &parser->rows[parser->nr_rows - 1] : NULL;

	if (last && last->rule == number)
		return;
	if (last && last->address == address) {
		last->rule = number;
		return;
	}
	parser->rows = xroom(parser->rows, parser->nr_rows, &parser->room_rows, sizeof(*parser->rows));
	parser->rows[parser->nr_rows++] = (struct early_row){address, number};
	function->nr++;
}

/* Advances the address. Returns false if that is not allowed (in a CIE), or if the end of the function is
 * reached or exceeded. */
static bool advance(struct run *run, __u64 by)
{
	if (!run->rows ||
	    by > (run->end - run->address) / (run->cie->code_factor ? run->cie->code_factor : 1))
		return false;
	add_row(run);
	run->address += by * run->cie->code_factor;
	return run->address < run->end;
}

static __s64 factored(const struct run *run, __s64 value)
{
	return (__u64)value * (__u64)run->cie->data_factor;
}

static struct saved at_frame(__s64 offset)
{
	return (struct saved){.how = AT_FRAME, .offset = offset};
}

static void set_frame(struct run *run, __u64 base, __s64 offset)
{
	run->state.frame = (struct expression){EXPRESSION_SUM, base, offset};
}

/* Executes an instruction with its operand in the low bits. Returns false to stop. */
static bool do_packed(struct run *run, __u64 op)
{
	__u64 operand = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(run, operand);
	case DW_CFA_offset:
		set_saved(run, operand, at_frame(factored(run, take_uleb(&run->reader))));
		return true;
	default:
		restore(run, operand);
		return true;
	}
}

static bool remember(struct run *run)
{
	if (run->nr_remembered == REMEMBERED_MOST)
		return false;
	run->remembered[run->nr_remembered++] = run->state;
	return true;
}

static bool recall(struct run *run)
{
	if (!run->nr_remembered)
		return false;
	run->state = run->remembered[--run->nr_remembered];
	return true;
}

static bool do_extended(struct run *run, __u64 op)
{
	struct reader *reader = &run->reader;
	__u64 which;

	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_advance_loc1:
		return advance(run, take(reader, 1));
	case DW_CFA_advance_loc2:
		return advance(run, take(reader, 2));
	case DW_CFA_advance_loc4:
		return advance(run, take(reader, 4));
	case DW_CFA_offset_extended:
		which = take_uleb(reader);
		set_saved(run, which, at_frame(factored(run, take_uleb(reader))));
		return true;
	case DW_CFA_offset_extended_sf:
		which = take_uleb(reader);
		set_saved(run, which, at_frame(factored(run, take_sleb(reader))));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		which = take_uleb(reader);
		set_saved(run, which, at_frame(factored(run, -take_uleb(reader))));
		return true;
	case DW_CFA_restore_extended:
		restore(run, take_uleb(reader));
		return true;
	case DW_CFA_undefined:
		set_saved(run, take_uleb(reader), (struct saved){.how = UNDEFINED});
		return true;
	case DW_CFA_same_value:
		set_saved(run, take_uleb(reader), (struct saved){.how = SAME});
		return true;
	case DW_CFA_register:
	case DW_CFA_val_offset:
		which = take_uleb(reader);
		take_uleb(reader);
		set_saved(run, which, (struct saved){.how = ELSEWHERE});
		return true;
	case DW_CFA_val_offset_sf:
		which = take_uleb(reader);
		take_sleb(reader);
		set_saved(run, which, (struct saved){.how = ELSEWHERE});
		return true;
	case DW_CFA_expression:
		which = take_uleb(reader);
		set_saved(run, which,
			  (struct saved){.how = AT_EXPRESSION,
					 .expression = expression_of(take_block(reader))});
		return true;
	case DW_CFA_val_expression:
		which = take_uleb(reader);
		take_block(reader);
		set_saved(run, which, (struct saved){.how = ELSEWHERE});
		return true;
	case DW_CFA_remember_state:
		return remember(run);
	case DW_CFA_restore_state:
		return recall(run);
	case DW_CFA_def_cfa:
		which = take_uleb(reader);
		set_frame(run, which, take_uleb(reader));
		return true;
	case DW_CFA_def_cfa_sf:
		which = take_uleb(reader);
		set_frame(run, which, factored(run, take_sleb(reader)));
		return true;
	case DW_CFA_def_cfa_register:
		set_frame(run, take_uleb(reader), run->state.frame.offset);
		return true;
	case DW_CFA_def_cfa_offset:
		set_frame(run, run->state.frame.base, take_uleb(reader));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		set_frame(run, run->state.frame.base, factored(run, take_sleb(reader)));
		return true;
	case DW_CFA_def_cfa_expression:
		run->state.frame = expression_of(take_block(reader));
		return true;
	case DW_CFA_GNU_args_size:
		take_uleb(reader);
		return true;
	default: /* includes DW_CFA_set_loc, which no compiler for x86-64 writes */
		return false;
	}
}

/* Executes all instructions. Returns false if one was not understood; nothing is known from
 * that address on. */
static bool run_all(struct run *run)
{
	while (run->reader.at < run->reader.end) {
		__u64 op = take(&run->reader, 1);
		bool goes_on = op & 0xc0 ? do_packed(run, op) : do_extended(run, op);

		if (run->reader.broken || !goes_on)
			return !run->reader.broken && run->rows && run->address == run->end;
	}
	return true;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Reads an address in this encoding. Indirect addresses, and those relative to anything but their own place,
 * are not supported: compilers for x86-64 do not write them here. */
static bool take_address(struct parser *parser, struct reader *reader, __u8 encoding, bool relative,
			 __u64 *address)
{
	__u64 own = parser->section->address + (reader->at - parser->section->bytes);

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*address = take(reader, 8);
		break;
	case DW_EH_PE_udata4:
		*address = take(reader, 4);
		break;
	case DW_EH_PE_sdata4:
		*address = take_signed(reader, 4);
		break;
	case DW_EH_PE_udata2:
		*address = take(reader, 2);
		break;
	case DW_EH_PE_sdata2:
		*address = take_signed(reader, 2);
		break;
	default:
		return false;
	}
	if (encoding & DW_EH_PE_indirect)
		return false;
	if (relative && (encoding & 0x70) == DW_EH_PE_pcrel)
		*address += own;
	return !reader->broken &&
	       (!relative || (encoding & 0x70) == 0 || (encoding & 0x70) == DW_EH_PE_pcrel);
}

/* Reads the augmentation data that `letters` ("zPLR") describe. */
static bool take_augmentation(struct parser *parser, struct cie *cie, struct reader *reader,
			      const char *letters)
{
	struct reader data;
	__u64 unused;

	cie->pointers = DW_EH_PE_absptr;
	if (!*letters)
		return true;
	if (*letters != 'z')
		return false;
	cie->augmented = true;
	data = take_block(reader);
	for (letters++; *letters; letters++)
		switch (*letters) {
		case 'R':
			cie->pointers = take(&data, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'P': {
			__u8 encoding = take(&data, 1);

			if (!take_address(parser, &data, encoding & ~DW_EH_PE_indirect, false, &unused))
				return false;
			break;
		}
		case 'L':
			take(&data, 1);
			break;
		case 'B': /* of another architecture */
			return false;
		default:
			return true; /* unknown letters come last, and the data has a length */
		}
	return !data.broken;
}

static void read_cie(struct parser *parser, struct reader reader, size_t offset)
{
	struct cie cie = {.offset = offset};
	__u8 version = take(&reader, 1);
	const char *letters = (const char *)reader.at;
	__u64 return_register;
	struct run *run;

	while (take(&reader, 1))
		;
	cie.usable = !reader.broken && (version == 1 || version == 3 || version == 4);
	if (version == 4)
		cie.usable &= take(&reader, 1) == 8 && !take(&reader, 1); /* sizes of address, segment */
	cie.code_factor = take_uleb(&reader);
	cie.data_factor = take_sleb(&reader);
	return_register = version == 1 ? take(&reader, 1) : take_uleb(&reader);
	cie.usable &= return_register == RIP && !reader.broken &&
		      take_augmentation(parser, &cie, &reader, letters) && !reader.broken;
	parser->cies = xroom(parser->cies, parser->nr_cies, &parser->room_cies, sizeof(*parser->cies));
	if (cie.usable) {
		run = xcalloc(1, sizeof(*run));
		*run = (struct run){.parser = parser, .cie = &cie, .reader = reader};
		cie.usable = run_all(run);
		cie.initial = run->state;
		free(run);
	}
	parser->cies[parser->nr_cies++] = cie;
}

static const struct cie *find_cie(const struct parser *parser, size_t offset)
{
	size_t low = 0, high = parser->nr_cies;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (parser->cies[middle].offset == offset)
			return &parser->cies[middle];
		if (parser->cies[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void read_fde(struct parser *parser, struct run *run, struct reader reader, size_t cie_offset)
{
	const struct unwind_section *section = parser->section;
	const struct cie *cie = find_cie(parser, cie_offset);
	__u64 begin, size;
	bool understood;

	if (!cie || !cie->usable || !take_address(parser, &reader, cie->pointers, true, &begin) ||
	    !take_address(parser, &reader, cie->pointers, false, &size))
		return;
	if (begin < section->low || begin >= section->high)
		return;
	if (size > section->high - begin)
		size = section->high - begin;
	if (!size)
		return;
	if (cie->augmented)
		take_block(&reader);
	if (reader.broken)
		return;
	parser->functions = xroom(parser->functions, parser->nr_functions, &parser->room_functions,
				  sizeof(*parser->functions));
	parser->functions[parser->nr_functions++] = (struct function){
		.begin = begin - section->low, .end = begin - section->low + size, .first = parser->nr_rows};
	run->parser = parser;
	run->cie = cie;
	run->reader = reader;
	run->state = cie->initial;
	run->nr_remembered = 0;
	run->address = begin;
	run->end = begin + size;
	run->rows = true;
	understood = run_all(run);
	if (understood && run->address < run->end)
		add_row(run);
	/* If an instruction was not understood, the function ends there for us. */
	parser->functions[parser->nr_functions - 1].end =
		(understood ? begin + size : run->address) - section->low;
}

static void read_entries(struct parser *parser)
{
	const struct unwind_section *section = parser->section;
	struct reader reader = {section->bytes, section->bytes + section->size, false};
	struct run *run = xcalloc(1, sizeof(*run));

	while (reader.end - reader.at >= 4) {
		size_t offset = reader.at - section->bytes, id_at;
		__u64 length = take(&reader, 4), id;
		struct reader entry;

		if (length == 0xffffffff)
			length = take(&reader, 8);
		if (!length)
			continue;
		if (reader.broken || length > (size_t)(reader.end - reader.at))
			break;
		entry = (struct reader){reader.at, reader.at + length, false};
		reader.at += length;
		id_at = entry.at - section->bytes;
		id = take(&entry, 4);
		if (entry.broken)
			continue;
		if (!id)
			read_cie(parser, entry, offset);
		else if (id <= id_at)
			read_fde(parser, run, entry, id_at - id);
	}
	free(run);
}

/* --- the table -------------------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
	const struct function *one = a, *two = b;

	if (one->begin != two->begin)
		return one->begin < two->begin ? -1 : 1;
	return one->first < two->first ? -1 : one->first > two->first;
}

/* If no function is known at the program's entry point, as in the dynamic linker, an outermost frame of at
 * most so many bytes is added there. */
#define ENTRY_MOST 256

static void add_entry(struct parser *parser)
{
	static const struct unwind_rule end = {.frame = FRAME_END};
	const struct unwind_section *section = parser->section;
	__u32 number, begin = section->entry - section->low, last;

	if (section->entry < section->low || section->entry >= section->high)
		return;
	last = section->high - section->entry > ENTRY_MOST ? begin + ENTRY_MOST
							   : (__u32)(section->high - section->low);
	for (size_t i = 0; i < parser->nr_functions; i++) {
		const struct function *function = &parser->functions[i];

		if (function->begin <= begin && function->end > begin)
			return;
		if (function->begin > begin && function->begin < last)
			last = function->begin;
	}
	number = interned_number(&parser->rules, &end);
	parser->functions = xroom(parser->functions, parser->nr_functions, &parser->room_functions,
				  sizeof(*parser->functions));
	parser->rows = xroom(parser->rows, parser->nr_rows, &parser->room_rows, sizeof(*parser->rows));
	parser->functions[parser->nr_functions++] = (struct function){begin, last, parser->nr_rows, 1};
	parser->rows[parser->nr_rows++] = (struct early_row){begin, number};
}

/* Returns all rows in order of their addresses, relative to the table's first page. A function ends where the
 * next one begins. A row for "nothing is known" is added after functions that no other follows directly. */
static struct early_row *in_order(struct parser *parser, size_t *nr_rows)
{
	__u32 none = interned_number(&parser->rules, &nothing), rule = none;
	__u32 low = parser->section->low & UNWIND_PAGE_MASK;
	size_t nr = parser->nr_functions;
	struct early_row *rows = xmalloc((parser->nr_rows + nr + 1) * sizeof(*rows));

	*nr_rows = 0;
	qsort(parser->functions, nr, sizeof(*parser->functions), by_begin);
	for (size_t i = 0; i < nr; i++) {
		const struct function *function = &parser->functions[i];
		bool followed = i + 1 < nr && function[1].begin <= function->end;
		__u32 end = followed ? function[1].begin : function->end;

		for (size_t j = 0; j < function->nr; j++) {
			const struct early_row *row = &parser->rows[function->first + j];

			if (row->address >= end || row->rule == rule)
				continue;
			rule = row->rule;
			rows[(*nr_rows)++] = (struct early_row){row->address + low, rule};
		}
		if (followed || rule == none)
			continue;
		rule = none;
		rows[(*nr_rows)++] = (struct early_row){end + low, rule};
	}
	return rows;
}

struct maker {
	struct unwind_table *table;
	size_t room;
};

static void put_row(struct maker *maker, __u32 address, __u32 rule)
{
	struct unwind_table *table = maker->table;

	table->rows = xroom(table->rows, table->nr_rows, &maker->room, sizeof(*table->rows));
	table->rows[table->nr_rows++] = rule << 16 | (address & UNWIND_PAGE_MASK);
}

/* Fills in the pages and their rows. Consecutive pages in which no row begins share one row. */
static void make_pages(struct maker *maker, const struct early_row *rows, size_t nr_rows, __u32 rule)
{
	struct unwind_table *table = maker->table;
	bool shared = false;

	for (size_t page = 0, i = 0; page < table->nr_pages; page++) {
		struct unwind_page *here = &table->pages[page];
		bool any = i < nr_rows && rows[i].address >> UNWIND_PAGE_SHIFT == page;

		if (!any && shared) {
			*here = table->pages[page - 1];
			continue;
		}
		shared = !any;
		here->first = table->nr_rows;
		if (!any || rows[i].address & UNWIND_PAGE_MASK)
			put_row(maker, 0, rule);
		for (; i < nr_rows && rows[i].address >> UNWIND_PAGE_SHIFT == page; i++)
			put_row(maker, rows[i].address, rule = rows[i].rule);
		here->nr = table->nr_rows - here->first;
	}
}

static void make(struct parser *parser, struct unwind_table *table)
{
	const struct unwind_section *section = parser->section;
	struct maker maker = {.table = table};
	struct early_row *rows;
	size_t nr;

	add_entry(parser);
	rows = in_order(parser, &nr);
	table->base = section->low & ~(__u64)UNWIND_PAGE_MASK;
	table->nr_pages = ((section->high - 1 - table->base) >> UNWIND_PAGE_SHIFT) + 1;
	table->pages = xcalloc(table->nr_pages, sizeof(*table->pages));
	make_pages(&maker, rows, nr, interned_number(&parser->rules, &nothing));
	free(rows);
	table->nr_rules = parser->rules.nr;
	table->rules = xmalloc(table->nr_rules * sizeof(*table->rules));
	for (size_t i = 0; i < table->nr_rules; i++)
		memcpy(&table->rules[i], interned_at(&parser->rules, i), sizeof(*table->rules));
}

#define RULES_MOST 65536

const char *unwind_table_of_section(struct unwind_table *table, const struct unwind_section *section)
{
	struct parser parser = {.section = section};
	const char *why = NULL;

	*table = (struct unwind_table){0};
	if (section->high <= section->low ||
	    section->high - (section->low & ~(__u64)UNWIND_PAGE_MASK) >= 1ULL << 32)
		return "the file's code has no place, or is larger than 4 GiB";
	interned_init(&parser.rules, sizeof(struct unwind_rule));
	read_entries(&parser);
	if (!parser.nr_functions)
		why = "the file's .eh_frame has no function";
	else if (parser.rules.nr >= RULES_MOST - 2)
		why = "the file's .eh_frame has more than 65,536 rules";
	else
		make(&parser, table);
	interned_release(&parser.rules);
	free(parser.cies);
	free(parser.functions);
	free(parser.rows);
	return why;
}

/* The largest .eh_frame that is read. Usual ones are smaller, and a larger one would not be
 * worth its memory. */
#define SECTION_MOST (64UL << 20)

const char *unwind_table_of_image(struct unwind_table *table, const struct image *image)
{
	struct unwind_section section = {0};
	struct segment *segments;
	const char *why;
	GElf_Shdr header;
	GElf_Ehdr file;
	char *bytes;
	size_t nr;

	*table = (struct unwind_table){0};
	if (!gelf_getehdr(image->elf, &file) || file.e_ident[EI_CLASS] != ELFCLASS64 ||
	    file.e_machine != EM_X86_64)
		return "the file is of another machine";
	if (!image_section(image, ".eh_frame", &header))
		return "the file has no .eh_frame";
	bytes = image_read_section(image, &header, SECTION_MOST);
	if (!bytes)
		return "the file's .eh_frame can't be read";
	segments = image_segments(image, &nr);
	for (size_t i = 0; i < nr; i++) {
		__u64 end = segments[i].address + segments[i].size;

		if (end <= segments[i].address)
			continue;
		if (!section.high || segments[i].address < section.low)
			section.low = segments[i].address;
		section.high = end > section.high ? end : section.high;
	}
	free(segments);
	section.bytes = (const unsigned char *)bytes;
	section.size = header.sh_size;
	section.address = header.sh_addr;
	section.entry = file.e_entry;
	why = unwind_table_of_section(table, &section);
	free(bytes);
	return why;
}
