// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses .eh_frame: see Linux Standard Base, Core, "DWARF Extensions". Its instructions, and .debug_frame,
 * which .eh_frame was made from: DWARF 5, 6.4. libdw could read it, too, but takes three to four times as
 * long: 6.2 instead of 1.6 ms for libc's.
 */
#include "confined/eh_frame.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "confined/unwind_rows.h"

/* DWARF register numbers: System V ABI for x86-64, 3.6.2. */
enum { RBX = 3, RBP = 6, RSP = 7, RIP = 16 };

/* --- reading bytes ---------------------------------------------------------------------------- */

struct byte_reader {
	const unsigned char *at, *end;
	bool broken; /* a read went beyond the end; it returned 0 */
};

static __u64 take_number(struct byte_reader *reader, size_t size)
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

static __s64 take_signed(struct byte_reader *reader, size_t size)
{
	unsigned int unused = 64 - 8 * size;

	return (__s64)(take_number(reader, size) << unused) >> unused;
}

/* Reads a LEB128 number: seven bits per byte, lowest first; a signed one is sign-extended. */
static __u64 take_leb(struct byte_reader *reader, bool has_sign)
{
	__u64 value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = take_number(reader, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (has_sign && byte & 0x40 && shift < 64)
		value |= ~0ULL << shift;
	return value;
}

static __u64 take_uleb(struct byte_reader *reader)
{
	return take_leb(reader, false);
}

static __s64 take_sleb(struct byte_reader *reader)
{
	return take_leb(reader, true);
}

/* Reads a length and returns a reader of the bytes that follow. */
static struct byte_reader take_block(struct byte_reader *reader)
{
	__u64 size = take_uleb(reader);
	struct byte_reader block = {reader->at, reader->at, false};

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

struct frame_state {
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
	struct frame_state initial;
};

struct parser {
	const struct frame_section *section; /* or a part of it … */
	size_t before;			     /* … that begins behind so many bytes */
	struct cie *cies;
	size_t nr_cies, room_cies;
	struct unwind_rows *rows; /* NULL: only the functions' ranges are wanted */
	struct frame_run *run;
	frame_visit *visit;
	void *of;
};

/* --- expressions ------------------------------------------------------------------------------ */

static bool take_base(struct byte_reader *reader, struct expression *expression)
{
	__u64 op = take_number(reader, 1);

	if (op < DW_OP_breg0 || op > DW_OP_breg31)
		return false;
	expression->base = op - DW_OP_breg0;
	expression->offset = take_sleb(reader);
	return true;
}

/* Parses "rsp + 8 + (((rip & 15) >= k) << 3)", which ld writes for the procedure linkage table:
 * elf_x86_64_eh_frame_plt in binutils' bfd/elf64-x86-64.c. */
static bool take_plt(struct byte_reader *reader, struct expression *expression)
{
	struct expression ip;
	__u64 least;

	if (expression->base != RSP || expression->offset != 8 || !take_base(reader, &ip) || ip.base != RIP ||
	    ip.offset || take_number(reader, 1) != DW_OP_lit15 || take_number(reader, 1) != DW_OP_and)
		return false;
	least = take_number(reader, 1);
	if (least < DW_OP_lit0 || least > DW_OP_lit15 || take_number(reader, 1) != DW_OP_ge ||
	    take_number(reader, 1) != DW_OP_lit3 || take_number(reader, 1) != DW_OP_shl ||
	    take_number(reader, 1) != DW_OP_plus)
		return false;
	expression->offset = least - DW_OP_lit0;
	return true;
}

static struct expression expression_of(struct byte_reader block)
{
	struct expression expression = {0};
	struct byte_reader rest;

	if (!take_base(&block, &expression))
		return (struct expression){0};
	rest = block;
	if (block.at == block.end)
		expression.kind = EXPRESSION_SUM;
	else if (take_number(&rest, 1) == DW_OP_deref && rest.at == rest.end)
		expression.kind = EXPRESSION_AT_SUM;
	else if (take_plt(&block, &expression) && block.at == block.end)
		expression.kind = EXPRESSION_PLT;
	if (block.broken || rest.broken)
		expression.kind = EXPRESSION_OTHER;
	return expression;
}

/* --- rules ------------------------------------------------------------------------------------ */

static bool fits_bits(__s64 value, unsigned int bits)
{
	return value >= -(1LL << (bits - 1)) && value < 1LL << (bits - 1);
}

static const struct unwind_rule other = {.frame = FRAME_OTHER};

/* The offset of rsp in the kernel's signal frame: in struct ucontext of arch/x86/include/uapi/asm/ucontext.h,
 * the gregs begin at 40, and rsp is the 16th of them. */
#define SIGNAL_RSP 160

static struct unwind_rule frame_of(const struct frame_state *state, bool signal)
{
	const struct expression *frame = &state->frame;
	struct unwind_rule rule = {.offset = frame->offset};

	if (signal)
		return frame->kind == EXPRESSION_AT_SUM && frame->base == RSP && frame->offset == SIGNAL_RSP
			       ? (struct unwind_rule){.frame = FRAME_SIGNAL}
			       : other;
	if (!fits_bits(frame->offset, 32))
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
	} else if ((bp->how == AT_FRAME || by_bp) && fits_bits(offset, 16)) {
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
	else if (bx->how == AT_FRAME && bx->offset < 0 && bx->offset % 8 == 0 && fits_bits(bx->offset / 8, 8))
		rule->bx = bx->offset / 8;
	else
		rule->bx = BX_LOST;
}

static struct unwind_rule rule_of(const struct frame_state *state, const struct cie *cie)
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

struct frame_run {
	struct parser *parser;
	const struct cie *cie;
	struct byte_reader reader;
	struct frame_state state;
	struct frame_state remembered[REMEMBERED_MOST];
	size_t nr_remembered;
	__u64 address; /* the address from which the current state applies */
	__u64 end;
	bool rows; /* rows are made: these are a function's instructions, not a CIE's */
};

static struct saved *saved_of(struct frame_state *state, __u64 which)
{
	return which == RBX ? &state->bx : which == RBP ? &state->bp : which == RIP ? &state->ip : NULL;
}

static void set_saved(struct frame_run *run, __u64 which, struct saved value)
{
	struct saved *saved = saved_of(&run->state, which);

	if (saved)
		*saved = value;
}

static void restore(struct frame_run *run, __u64 which)
{
	struct frame_state initial = run->cie->initial;
	const struct saved *saved = saved_of(&initial, which);

	if (saved)
		set_saved(run, which, *saved);
}

static void add_row(struct frame_run *run)
{
	struct unwind_rule rule = rule_of(&run->state, run->cie);

	unwind_rows_add(run->parser->rows, run->address, &rule);
}

/* Advances the address. Returns false if that is not allowed (in a CIE), or if the end of the function is
 * reached or exceeded. */
static bool advance(struct frame_run *run, __u64 by)
{
	if (!run->rows ||
	    by > (run->end - run->address) / (run->cie->code_factor ? run->cie->code_factor : 1))
		return false;
	add_row(run);
	run->address += by * run->cie->code_factor;
	return run->address < run->end;
}

static __s64 factored(const struct frame_run *run, __s64 value)
{
	return (__u64)value * (__u64)run->cie->data_factor;
}

static struct saved at_frame(__s64 offset)
{
	return (struct saved){.how = AT_FRAME, .offset = offset};
}

static void set_frame(struct frame_run *run, __u64 base, __s64 offset)
{
	run->state.frame = (struct expression){EXPRESSION_SUM, base, offset};
}

/* Executes an instruction with its operand in the low bits. Returns false to stop. */
static bool do_packed(struct frame_run *run, __u64 op)
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

static bool remember_state(struct frame_run *run)
{
	if (run->nr_remembered == REMEMBERED_MOST)
		return false;
	run->remembered[run->nr_remembered++] = run->state;
	return true;
}

static bool recall(struct frame_run *run)
{
	if (!run->nr_remembered)
		return false;
	run->state = run->remembered[--run->nr_remembered];
	return true;
}

static bool do_extended(struct frame_run *run, __u64 op)
{
	struct byte_reader *reader = &run->reader;
	__u64 which;

	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_advance_loc1:
		return advance(run, take_number(reader, 1));
	case DW_CFA_advance_loc2:
		return advance(run, take_number(reader, 2));
	case DW_CFA_advance_loc4:
		return advance(run, take_number(reader, 4));
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
		return remember_state(run);
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
static bool run_all(struct frame_run *run)
{
	while (run->reader.at < run->reader.end) {
		__u64 op = take_number(&run->reader, 1);
		bool goes_on = op & 0xc0 ? do_packed(run, op) : do_extended(run, op);

		if (run->reader.broken || !goes_on)
			return !run->reader.broken && run->rows && run->address == run->end;
	}
	return true;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Reads an address in this encoding. Indirect addresses, and those relative to anything but their own place,
 * are not supported: compilers for x86-64 do not write them here. */
static bool take_address(struct parser *parser, struct byte_reader *reader, __u8 encoding, bool relative,
			 __u64 *address)
{
	__u64 own = parser->section->address + (reader->at - parser->section->bytes);

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
		*address = take_number(reader, parser->section->narrow ? 4 : 8);
		break;
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*address = take_number(reader, 8);
		break;
	case DW_EH_PE_udata4:
		*address = take_number(reader, 4);
		break;
	case DW_EH_PE_sdata4:
		*address = take_signed(reader, 4);
		break;
	case DW_EH_PE_udata2:
		*address = take_number(reader, 2);
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
	if (parser->section->narrow)
		*address &= ~0U;
	return !reader->broken &&
	       (!relative || (encoding & 0x70) == 0 || (encoding & 0x70) == DW_EH_PE_pcrel);
}

/* Reads the augmentation data that `letters` ("zPLR") describe. */
static bool take_augmentation(struct parser *parser, struct cie *cie, struct byte_reader *reader,
			      const char *letters)
{
	struct byte_reader data;
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
			cie->pointers = take_number(&data, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'P': {
			__u8 encoding = take_number(&data, 1);

			if (!take_address(parser, &data, encoding & ~DW_EH_PE_indirect, false, &unused))
				return false;
			break;
		}
		case 'L':
			take_number(&data, 1);
			break;
		case 'B': /* of another architecture */
			return false;
		default:
			return true; /* unknown letters come last, and the data has a length */
		}
	return !data.broken;
}

static void read_cie(struct parser *parser, struct byte_reader reader, size_t offset)
{
	struct cie cie = {.offset = offset};
	__u8 version = take_number(&reader, 1);
	const char *letters = (const char *)reader.at;
	__u64 return_register;
	struct frame_run *run;

	while (take_number(&reader, 1))
		;
	cie.usable = !reader.broken && (version == 1 || version == 3 || version == 4);
	if (version == 4)
		cie.usable &= take_number(&reader, 1) == (parser->section->narrow ? 4 : 8) &&
			      !take_number(&reader, 1); /* sizes of address, segment */
	cie.code_factor = take_uleb(&reader);
	cie.data_factor = take_sleb(&reader);
	return_register = version == 1 ? take_number(&reader, 1) : take_uleb(&reader);
	cie.usable &= (!parser->rows || return_register == RIP) && !reader.broken &&
		      take_augmentation(parser, &cie, &reader, letters) && !reader.broken;
	parser->cies = xroom(parser->cies, parser->nr_cies, &parser->room_cies, sizeof(*parser->cies));
	if (cie.usable && parser->rows) {
		run = xcalloc(1, sizeof(*run));
		*run = (struct frame_run){.parser = parser, .cie = &cie, .reader = reader};
		cie.usable = run_all(run);
		cie.initial = run->state;
		free(run);
	}
	parser->cies[parser->nr_cies++] = cie;
}

static const struct cie *find_cie(const struct parser *parser, size_t offset)
{
	size_t low = 0, high = parser->nr_cies;

	/* Compilers write a CIE before the functions that take it. */
	if (high && parser->cies[high - 1].offset == offset)
		return &parser->cies[high - 1];
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

static void read_fde(struct parser *parser, struct byte_reader reader, size_t cie_offset)
{
	const struct cie *cie = find_cie(parser, cie_offset);
	struct frame_run *run = parser->run;
	__u64 begin, size;
	bool understood;

	if (!cie || !cie->usable || !take_address(parser, &reader, cie->pointers, true, &begin) ||
	    !take_address(parser, &reader, cie->pointers, false, &size))
		return;
	if (size > ~0ULL - begin)
		size = ~0ULL - begin;
	if (!parser->rows) {
		parser->visit(parser->of, begin, begin + size);
		return;
	}
	if (cie->augmented)
		take_block(&reader);
	if (reader.broken || !unwind_rows_function(parser->rows, begin, begin + size))
		return;
	if (size > parser->rows->high - begin)
		size = parser->rows->high - begin;
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
	if (!understood)
		unwind_rows_cut(parser->rows, run->address);
}

/* Where the CIE of an FDE begins: .eh_frame has its distance from the number, and 0 marks a CIE; .debug_frame
 * has its offset in the section, and marks a CIE by ones. Returns false if there is no such place. */
static bool find_cie_of(const struct frame_section *section, size_t id_at, __u64 id, size_t *cie)
{
	*cie = section->debug ? id : id_at - id;
	return section->debug || id <= id_at;
}

/* Returns how many bytes are of whole entries. */
static size_t read_entries(struct parser *parser)
{
	const struct frame_section *section = parser->section;
	struct byte_reader reader = {section->bytes, section->bytes + section->size, false};
	size_t whole = 0;

	for (; reader.end - reader.at >= 4; whole = reader.at - section->bytes) {
		size_t offset = parser->before + whole, id_at, cie;
		__u64 length = take_number(&reader, 4), id;
		bool wide = length == 0xffffffff;
		struct byte_reader entry;

		if (wide)
			length = take_number(&reader, 8);
		if (reader.broken || length > (size_t)(reader.end - reader.at))
			break;
		if (!length)
			continue;
		entry = (struct byte_reader){reader.at, reader.at + length, false};
		reader.at += length;
		id_at = parser->before + (entry.at - section->bytes);
		id = take_number(&entry, wide && section->debug ? 8 : 4);
		if (entry.broken)
			continue;
		if (id == (!section->debug ? 0 : wide ? ~0ULL : ~0U))
			read_cie(parser, entry, offset);
		else if (find_cie_of(section, id_at, id, &cie))
			read_fde(parser, entry, cie);
	}
	return whole;
}

void eh_frame_read(struct unwind_rows *rows, const struct frame_section *section)
{
	struct frame_run *run = xcalloc(1, sizeof(*run));
	struct parser parser = {.section = section, .rows = rows, .run = run};

	read_entries(&parser);
	free(parser.cies);
	free(run);
}

/* Bytes at once: they stay in the CPU's cache, and take no memory of their own for each section. An entry
 * takes some 30; where one is larger, more are read. */
#define PIECE (64UL << 10)

bool eh_frame_functions(const struct frame_source *source, size_t most, frame_visit *visit, void *of)
{
	size_t room = PIECE, got = 0, size;
	unsigned char *bytes = xmalloc(room);
	struct frame_section piece = {.bytes = bytes, .narrow = source->narrow};
	struct parser parser = {.section = &piece, .visit = visit, .of = of};

	while (room <= most) {
		__u64 left = source->size - parser.before - got;

		size = left < room - got ? left : room - got;
		if (!size || !source->read(source->of, bytes + got, size, parser.before + got))
			break;
		piece.bytes = bytes;
		piece.size = got + size;
		piece.address = source->address + parser.before;
		size = read_entries(&parser);
		parser.before += size;
		got = piece.size - size;
		if (!size)
			bytes = xrealloc(bytes, room *= 2);
		else
			memmove(bytes, bytes + size, got);
	}
	free(parser.cies);
	free(bytes);
	return room <= most;
}
