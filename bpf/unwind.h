/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables by which a stack is walked without frame pointers, as they stand in memory that programs read and
 * user space writes: made of .eh_frame by unwind/table.c, walked by unwind.bpf.h.
 *
 * A row is 4 bytes: the low 16 bits of the address from which on it holds, and above them the number of a
 * rule. A file's rules stand once each. A directory has for each 64 KiB of addresses where their rows
 * begin and how many they are; a page's first row is at its beginning, so no search leaves the page.
 */
#ifndef NHMTAP_UNWIND_H
#define NHMTAP_UNWIND_H

#include <linux/types.h>

/* How the canonical frame address is found: what the stack pointer is once the function has returned. The
 * return address lies below it. */
enum unwind_frame {
	FRAME_NONE,	     /* no function is known here */
	FRAME_OTHER,	     /* there is a rule that this format has not */
	FRAME_END,	     /* the outermost function: the stack ends */
	FRAME_SP,	     /* rsp + offset */
	FRAME_BP,	     /* rbp + offset */
	FRAME_AT_SP,	     /* *(rsp + offset) */
	FRAME_AT_BP,	     /* *(rbp + offset) */
	FRAME_PLT,	     /* rsp + 8, and 8 more from `offset` on of each 16 bytes: an entry of the PLT */
	FRAME_SIGNAL,	     /* a signal's: all registers are in the kernel's frame, at rsp */
	FRAME_BX,	     /* rbx + offset: where the dynamic linker binds a function at its first call */
	FRAME_NO_TABLE = 15, /* of the walk alone: there is no table that could say */
};

/* What rbp was in the caller. */
enum unwind_bp {
	BP_SAME,
	BP_AT_FRAME, /* *(frame address + bp_offset) */
	BP_AT_BP,    /* *(rbp + bp_offset) */
	BP_LOST,
};

/* What rbx was in the caller. Below: *(frame address + 8 * this). */
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
	__u32 first; /* row; in the memory that programs read, where it stands: see struct unwind_block */
	__u32 nr;
};

/*
 * The memory: blocks of 1 MiB, each an array map that user space has mapped, made when it is needed. Where
 * something stands is the number of its block and the word in it: `block << UNWIND_WORD_BITS | word`. Nothing
 * reaches from one block into the next one. Word 0 of block 0 is nobody's.
 */
#define UNWIND_WORD_BITS   18
#define UNWIND_BLOCK_WORDS (1U << UNWIND_WORD_BITS)
#define UNWIND_BLOCKS	   64

struct unwind_block {
	__u32 words[UNWIND_BLOCK_WORDS];
};

/* A file with code. */
struct unwind_file {
	__u64 base;	/* of its directory: see struct unwind_table in unwind/table.h */
	__u32 pages;	/* where the directory stands */
	__u32 nr_pages; /* 0: it has no table, or none yet; set last */
	__u32 rules;	/* where they stand */
	__u32 used;	/* a program has needed it since user space wrote 0 here */
};

#define UNWIND_FILES   8192 /* a power of two */
#define UNWIND_NO_FILE 0    /* of mappings without one: code that was made at run time */

struct unwind_files {
	struct unwind_file list[UNWIND_FILES];
	__u32 epoch; /* rules of another one are looked up anew, so that their files are seen to be used */
	__u32 unused;
};

/* A file as the kernel knows it, for what user space has no list of yet; of the vdso all is 0. */
struct unwind_inode {
	__u64 number, device, size;
};

struct unwind_named {
	__u64 file; /* its number */
	__s64 bias; /* an offset in the file less this is the file's own address, where it has code */
};

/* Where this kernel keeps what a process has mapped: offsets in bytes. */
struct unwind_kernel {
	__u32 mm;				  /* task_struct; 0: it is not known */
	__u32 root, vdso;			  /* mm_struct */
	__u32 start, end, page, owner, file;	  /* vm_area_struct */
	__u32 inode, number, super, size, device; /* file, inode, super_block */
	__u32 leaf, gaps;			  /* enum maple_type */
	struct unwind_node {
		__u32 pivots, slots, nr_pivots;
	} nodes[2]; /* struct maple_range_64, struct maple_arange_64 */
};

/* What a process has mapped: a list in the memory, sorted by address, which never changes as long as a
 * program may be in it. */
struct unwind_list {
	__u32 serial; /* no two lists have the same */
	__u32 nr;
	__u32 unused[6];
};

struct unwind_mapping {
	__u64 begin, end;
	__u64 bias; /* an address less this is the file's own */
	__u32 file; /* its number */
	__u32 unused;
};

#define UNWIND_MAPPINGS                                                                                      \
	((UNWIND_BLOCK_WORDS * 4 - sizeof(struct unwind_list)) / sizeof(struct unwind_mapping))

/* Of a process: where its list stands. If what stands there has another serial by now, there is none. */
struct unwind_process {
	__u32 list;
	__u32 serial;
};

#define UNWIND_PROCESSES 32768

/* How often processes that have a list executed something, by the low bits of their pids. */
#define UNWIND_EXECUTIONS 4096

struct unwind_executions {
	__u32 nr[UNWIND_EXECUTIONS];
};

#endif
