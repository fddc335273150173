/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables by which a stack is walked without frame pointers, as they lie in memory that BPF programs read and
 * user space writes: made by confined/unwind_image.c from .eh_frame and the like, used by unwind.bpf.h.
 *
 * A row has 4 bytes: the low 16 bits of the address from which on it holds, and above them the number of a
 * rule. Each different rule of a file is stored once. A directory has an entry for each page of 64 KiB of
 * addresses: where its rows begin and how many there are. The first row of a page is for its first address,
 * so no search leaves the page.
 */
#pragma once

#include <linux/types.h>

/* How to compute the canonical frame address (CFA): the value of the stack pointer after the function has
 * returned. The return address is stored just below it. */
enum unwind_frame {
	FRAME_NONE,   /* no function is known here */
	FRAME_OTHER,  /* there is a rule that this format can't express */
	FRAME_END,    /* the outermost function: the stack ends */
	FRAME_SP,     /* rsp + offset */
	FRAME_BP,     /* rbp + offset */
	FRAME_AT_SP,  /* *(rsp + offset) */
	FRAME_AT_BP,  /* *(rbp + offset) */
	FRAME_PLT,    /* rsp + 8, or rsp + 16 from byte `offset` on of each 16 bytes: an entry of the PLT */
	FRAME_SIGNAL, /* the frame of a signal: the kernel has saved all registers there, at rsp */
	FRAME_BX,     /* rbx + offset: where the dynamic linker binds a function at its first call */
	FRAME_SWITCH, /* rbp + offset, where another stack may be: the function has left its caller's */
	FRAME_NO_TABLE = 15, /* only in the walk, never in a table: there is no table for the address */
};

/* How to find the caller's rbp. */
enum unwind_bp {
	BP_SAME,
	BP_AT_FRAME, /* *(frame address + bp_offset) */
	BP_AT_BP,    /* *(rbp + bp_offset) */
	BP_LOST,
};

/* How to find the caller's rbx. Values below 0 mean that it is saved at *(frame address + 8 * value). */
enum unwind_bx { BX_SAME, BX_LOST };

struct unwind_rule {
	__u8 frame : 4; /* enum unwind_frame */
	__u8 bp : 4;	/* enum unwind_bp */
	__s8 bx;	/* enum unwind_bx */
	__s16 bp_offset;
	__s32 offset;
};

#define UNWIND_PAGE_SHIFT 16
#define UNWIND_PAGE_MASK  0xffffU

struct unwind_page {
	__u32 first; /* its first row; in the memory that programs read, the position of that row: see struct
			unwind_block */
	__u32 nr;
};

/*
 * The memory consists of blocks of 1 MiB. Each is an array map that user space has mapped and makes when it
 * is needed. A position is the number of a block and the index of a word in it: `block << UNWIND_WORD_BITS |
 * word`. Nothing extends from one block into the next. Position 0 is never given out.
 */
#define UNWIND_WORD_BITS   18
#define UNWIND_BLOCK_WORDS (1U << UNWIND_WORD_BITS)
#define UNWIND_BLOCKS	   64

struct unwind_block {
	__u32 words[UNWIND_BLOCK_WORDS];
};

/* A file with code, as programs know it. */
struct unwind_file {
	__u64 base;	/* of its directory: see struct unwind_table in unwind/table.h */
	__u32 pages;	/* position of the directory */
	__u32 nr_pages; /* entries of the directory; 0: no table, or none yet. Written last */
	__u32 rules;	/* position of the rules */
	__u32 used;	/* set to 1 when a program needs the file; user space sets it back to 0 */
};

#define UNWIND_FILES   8192 /* a power of two */
#define UNWIND_NO_FILE 0    /* the file number of mappings without a file: code that was made at run time */

struct unwind_files {
	struct unwind_file list[UNWIND_FILES];
	__u32 epoch; /* user space changes it so that cached rules are looked up again and the files that they
			belong to are marked as used */
	__u32 unused;
};

/* A file as the kernel knows it, for processes that user space has no list of yet; all members are 0 for the
 * vdso. */
struct unwind_inode {
	__u64 number, device, size;
};

struct unwind_named {
	__u64 file; /* its number */
	__s64 bias; /* subtracted from an offset in the file, gives the address in the file, where the file
		       has code */
};

/* Offsets, in bytes, of the members by which this kernel leads to what a process has mapped. */
struct unwind_kernel {
	__u32 mm;				  /* task_struct; 0: the offsets are not known */
	__u32 root, vdso;			  /* mm_struct */
	__u32 start, end, page, owner, file;	  /* vm_area_struct */
	__u32 inode, number, super, size, device; /* file, inode, super_block */
	__u32 leaf, gaps;			  /* enum maple_type */
	struct unwind_node {
		__u32 pivots, slots, nr_pivots;
	} nodes[2]; /* struct maple_range_64, struct maple_arange_64 */
};

/* What a process has mapped: a list in the memory, sorted by address. A list never changes while a program
 * may be reading it. */
struct unwind_list {
	__u32 serial; /* unique for each list */
	__u32 nr;
	__u32 unused[6];
};

struct unwind_mapping {
	__u64 begin, end;
	__u64 bias; /* subtracted from an address of the process, gives the address in the file */
	__u32 file; /* its number */
	__u32 unused;
};

#define UNWIND_MAPPINGS                                                                                      \
	((UNWIND_BLOCK_WORDS * 4 - sizeof(struct unwind_list)) / sizeof(struct unwind_mapping))

/* The list of a process. If the list at this position has another serial, the process has none. */
struct unwind_process {
	__u32 list;
	__u32 serial;
};

#define UNWIND_PROCESSES 32768

/* How often processes with a list have executed another program, by the low bits of their pids. */
#define UNWIND_EXECUTIONS 4096

struct unwind_executions {
	__u32 nr[UNWIND_EXECUTIONS];
};
