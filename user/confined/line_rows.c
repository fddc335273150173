// SPDX-License-Identifier: GPL-2.0-only
#include "confined/line_rows.h"

#include <dwarf.h>
#include <stdbool.h>
#include <string.h>
#include <linux/types.h>

struct cursor {
	const __u8 *at, *end;
};

static __u64 take_number(struct cursor *cursor, size_t size)
{
	__u64 number = 0;

	if ((size_t)(cursor->end - cursor->at) < size)
		size = cursor->end - cursor->at;
	memcpy(&number, cursor->at, size < sizeof(number) ? size : sizeof(number));
	cursor->at += size;
	return number;
}

static __u64 take_leb128(struct cursor *cursor)
{
	__u64 number = 0;
	__u8 byte = 0x80;

	for (unsigned int shift = 0; byte & 0x80 && cursor->at < cursor->end; shift += 7) {
		byte = *cursor->at++;
		number |= shift < 64 ? (byte & 0x7fULL) << shift : 0;
	}
	return number;
}

/* Takes an instruction that is no special opcode. Returns whether it adds a row. */
static bool take_instruction(struct cursor *cursor, __u8 opcode, const __u8 *nr_operands)
{
	bool adds = opcode == DW_LNS_copy;

	if (!opcode) {
		__u64 size = take_leb128(cursor);

		adds = size && cursor->at < cursor->end && *cursor->at == DW_LNE_end_sequence;
		take_number(cursor, size);
	} else if (opcode == DW_LNS_fixed_advance_pc) {
		take_number(cursor, 2);
	} else {
		for (__u8 i = 0; i < nr_operands[opcode - 1]; i++)
			take_leb128(cursor);
	}
	return adds;
}

size_t line_rows(const void *table, size_t size)
{
	struct cursor header = {table, (const __u8 *)table + size}, program;
	__u64 length = take_number(&header, 4), version = take_number(&header, 2);
	const __u8 *nr_operands;
	size_t nr = 0;
	__u8 base;

	if (length > size || version < 2 || version > 5)
		return size;
	take_number(&header, version == 5 ? 2 : 0); /* sizes of an address and of a segment selector */
	length = take_number(&header, 4);
	program = header;
	take_number(&program, length);
	/* minimum_instruction_length, maximum_operations_per_instruction, default_is_stmt, line_base and
	 * line_range
	 */
	take_number(&header, version >= 4 ? 5 : 4);
	base = take_number(&header, 1);
	nr_operands = header.at;
	if (!base || (size_t)(header.end - header.at) < base)
		return size;
	while (program.at < program.end) {
		__u8 opcode = *program.at++;

		nr += opcode >= base || take_instruction(&program, opcode, nr_operands);
	}
	return nr;
}
