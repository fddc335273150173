/* SPDX-License-Identifier: GPL-2.0-only */
/* Instructions as far as they say where an address comes from. Registers have DWARF's numbers for x86-64. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#define REGISTER_FRAME 6 /* rbp */
#define REGISTER_STACK 7 /* rsp */

struct memory_operand {
	int base, index, scale; /* registers; -1: none */
	bool thread;		/* from the thread pointer, fs */
	bool fixed; /* `offset` is the address: relative to the instruction pointer, or absolute */
	__u64 offset;
};

enum instruction_kind {
	INSTRUCTION_OTHER,
	INSTRUCTION_COPY,    /* of the register `source` */
	INSTRUCTION_CHOICE,  /* the same, or nothing */
	INSTRUCTION_ADD,     /* of memory.offset to the register that it writes */
	INSTRUCTION_SUM,     /* of that register and `source`; -1: and what it loads */
	INSTRUCTION_PRODUCT, /* `factor` times `source`, or what it loads if that is -1, into a register */
	INSTRUCTION_ADDRESS, /* lea */
	INSTRUCTION_NUMBER,  /* memory.offset into a register */
	INSTRUCTION_CALL,
	INSTRUCTION_LOAD,  /* of 64 bits into a register */
	INSTRUCTION_PART,  /* the same of fewer bits */
	INSTRUCTION_STORE, /* of the register `source`, or a part of it; -1: of a number */
};

struct instruction {
	__u64 address;
	enum instruction_kind kind;
	int source;
	__u64 factor;
	struct memory_operand memory;
	bool accesses;	     /* `memory` is the only one that it accesses */
	bool stores;	     /* it writes there */
	bool of_stack;	     /* it accesses the stack without an operand for it: push, pop, call, ret */
	unsigned int width;  /* bytes of it; 0: more than a register's */
	__u32 writes;	     /* registers, as bits; a call writes all that its callee may */
	__u64 callee;	     /* of a call; 0: not known */
	__u64 jump;	     /* where it may jump to; 0: nowhere */
	bool jumps_anywhere; /* it jumps, and where is not known */
	bool ends;	     /* the next instruction is not the one behind it */
	bool target;	     /* for the caller */
};

/* Reads 64-bit code that begins at this address, up to what is no instruction. The list is empty without
 * libcapstone. The caller frees it. */
void instructions_read(const __u8 *code, size_t size, __u64 address, struct instruction **list, size_t *nr);
