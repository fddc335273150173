// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares a file's table with the unwind rules of elfutils' libdw for the same addresses: rows
 * FILE [EVERY]. At each EVERYth row, compares its address and the address before it. Prints how
 * many were compared, how many differ, and the size of the table. rows FILE .debug_frame compares with that
 * section, and only the frames that are at rsp. rows FILE at ADDRESS... prints the rules there.
 */
#include <dwarf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <elfutils/libdw.h>

#include "confined/unwind_image.h"
#include "naming/image.h"
#include "unwind/table.h"

static Dwarf_CFI *cfi;

static struct unwind_rule of_frame(const Dwarf_Op *ops, size_t nr, int frame, int at_frame,
				   struct unwind_rule rule)
{
	rule.offset = ops[0].number;
	if (nr == 2 && ops[1].atom == DW_OP_plus_uconst) /* libdw writes reg + offset so */
		rule.offset += ops[1].number;
	if (nr == 1 || (nr == 2 && ops[1].atom == DW_OP_plus_uconst))
		rule.frame = frame;
	else if (nr == 2 && ops[1].atom == DW_OP_deref)
		rule.frame = at_frame;
	else
		rule.frame = FRAME_OTHER;
	return rule;
}

static struct unwind_rule theirs(__u64 address)
{
	struct unwind_rule rule = {.frame = FRAME_NONE};
	Dwarf_Frame *frame;
	Dwarf_Op mem[3], *ops;
	size_t nr;
	bool signal;

	if (dwarf_cfi_addrframe(cfi, address, &frame))
		return rule;
	rule.frame = FRAME_OTHER;
	dwarf_frame_info(frame, NULL, NULL, &signal);
	/* The return address. If it is undefined, libdw returns no operations, in mem. */
	if (dwarf_frame_register(frame, 16, mem, &ops, &nr)) {
		goto out;
	}
	if (!nr && ops == mem) {
		rule.frame = FRAME_END;
		goto out;
	}
	if (!signal && !(nr == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst &&
			 (int64_t)ops[1].number == -8))
		goto out;
	if (dwarf_frame_cfa(frame, &ops, &nr) || !nr)
		goto out;
	if (signal) {
		if (nr == 2 && ops[0].atom == DW_OP_breg7 && ops[0].number == 160 &&
		    ops[1].atom == DW_OP_deref)
			rule.frame = FRAME_SIGNAL;
		goto out;
	}
	if (ops[0].atom == DW_OP_bregx && (ops[0].number == 7 || ops[0].number == 6 || ops[0].number == 3)) {
		rule.offset = ops[0].number2;
		rule.frame = nr > 1		  ? FRAME_OTHER
			     : ops[0].number == 7 ? FRAME_SP
			     : ops[0].number == 6 ? FRAME_BP
						  : FRAME_BX;
	} else if (ops[0].atom == DW_OP_breg7 && nr == 9 && ops[2].atom == DW_OP_lit15 &&
		   ops[8].atom == DW_OP_plus) {
		rule.frame = FRAME_PLT;
		rule.offset = ops[4].atom - DW_OP_lit0;
	} else if (ops[0].atom == DW_OP_breg7) {
		rule = of_frame(ops, nr, FRAME_SP, FRAME_AT_SP, rule);
	} else if (ops[0].atom == DW_OP_breg6) {
		rule = of_frame(ops, nr, FRAME_BP, FRAME_AT_BP, rule);
	} else if (ops[0].atom == DW_OP_breg3) {
		rule = of_frame(ops, nr, FRAME_BX, FRAME_OTHER, rule);
	}
	if (rule.frame == FRAME_OTHER) {
		rule.offset = 0;
		goto out;
	}
	rule.bp = BP_LOST;
	if (dwarf_frame_register(frame, 6, mem, &ops, &nr))
		goto out;
	if (!nr && !ops) {
		rule.bp = BP_SAME;
	} else if (nr && ops[0].atom == DW_OP_call_frame_cfa &&
		   (nr == 1 || (nr == 2 && ops[1].atom == DW_OP_plus_uconst))) {
		rule.bp = BP_AT_FRAME;
		rule.bp_offset = nr == 1 ? 0 : ops[1].number;
	} else if (nr == 1 && ops[0].atom == DW_OP_breg6) {
		rule.bp = BP_AT_BP;
		rule.bp_offset = ops[0].number;
	}
	rule.bx = BX_LOST;
	if (dwarf_frame_register(frame, 3, mem, &ops, &nr))
		goto out;
	if (!nr) /* libdw has no default for rbx; without a rule, the function leaves it alone */
		rule.bx = BX_SAME;
	else if (nr == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst &&
		 (int64_t)ops[1].number < 0 && (int64_t)ops[1].number >= -1024 && !(ops[1].number & 7))
		rule.bx = (int64_t)ops[1].number / 8;
out:
	free(frame);
	return rule;
}

static unsigned long compared, different;
static bool frames_only;

static void compare(const struct unwind_table *table, __u64 address)
{
	struct unwind_rule ours = unwind_table_at(table, address), wanted = theirs(address);

	/* Only our table has a rule for an entry point that belongs to no function. */
	if (frames_only && (ours.frame != FRAME_SP || wanted.frame == FRAME_NONE))
		return;
	compared++;
	if (frames_only && wanted.frame == FRAME_SP && wanted.offset == ours.offset)
		return;
	if (!memcmp(&ours, &wanted, sizeof(ours)) || (ours.frame == FRAME_END && wanted.frame == FRAME_NONE))
		return;
	if (different++ < 10)
		printf("%llx: ours %d %d bp %d %d bx %d, libdw's %d %d bp %d %d bx %d\n", address, ours.frame,
		       ours.offset, ours.bp, ours.bp_offset, ours.bx, wanted.frame, wanted.offset, wanted.bp,
		       wanted.bp_offset, wanted.bx);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static int print_rules(const struct unwind_table *table, char **addresses)
{
	for (; *addresses; addresses++) {
		struct unwind_rule rule = unwind_table_at(table, strtoull(*addresses, NULL, 16));

		printf("%d %d %d %d\n", rule.frame, rule.offset, rule.bp, rule.bp_offset);
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t every = argc > 2 && *argv[2] >= '0' && *argv[2] <= '9' ? strtoul(argv[2], NULL, 0) : 1,
	       other = 0;
	struct unwind_table table;
	struct image image;
	const char *why = image_from_file(&image, open(argv[1], O_RDONLY | O_CLOEXEC));
	double begin = seconds(), took;

	why = why ? why : unwind_table_of_image(&table, &image);
	took = seconds() - begin;
	if (why) {
		printf("%s\n", why);
		return 1;
	}
	if (argc > 2 && !strcmp(argv[2], "at"))
		return print_rules(&table, argv + 3);
	frames_only = argc > 2 && !strcmp(argv[2], ".debug_frame");
	cfi = frames_only ? dwarf_getcfi(dwarf_begin_elf(image.elf, DWARF_C_READ, NULL))
			  : dwarf_getcfi_elf(image.elf);
	for (size_t page = 0, row = 0; page < table.nr_pages; page++)
		for (size_t i = 0; i < table.pages[page].nr; i++, row++) {
			__u32 word = table.rows[table.pages[page].first + i];
			__u64 address = table.base + (page << UNWIND_PAGE_SHIFT) + (word & UNWIND_PAGE_MASK);

			other += table.rules[word >> 16].frame == FRAME_OTHER;
			if (row % every || !cfi)
				continue;
			compare(&table, address);
			if (address > table.base)
				compare(&table, address - 1);
		}
	printf("rows %zu compared %lu different %lu other %zu rules %zu bytes %zu ms %.1f\n", table.nr_rows,
	       compared, different, other, table.nr_rules,
	       table.nr_rows * sizeof(*table.rows) + table.nr_pages * sizeof(*table.pages) +
		       table.nr_rules * sizeof(*table.rules),
	       took * 1000);
	unwind_table_release(&table);
	image_close(&image);
	return different != 0;
}
