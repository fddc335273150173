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
	FRAME_NONE,   /* no function is known here */
	FRAME_OTHER,  /* there is a rule that this format has not */
	FRAME_END,    /* nobody called it: the stack ends */
	FRAME_SP,     /* rsp + offset */
	FRAME_BP,     /* rbp + offset */
	FRAME_AT_SP,  /* *(rsp + offset) */
	FRAME_AT_BP,  /* *(rbp + offset) */
	FRAME_PLT,    /* rsp + 8, and 8 more from `offset` on of each 16 bytes: an entry of the PLT */
	FRAME_SIGNAL, /* a signal's: all registers are in the kernel's frame, at rsp */
};

/* What rbp was in the caller. */
enum unwind_bp {
	BP_SAME,
	BP_AT_FRAME, /* *(frame address + bp_offset) */
	BP_AT_BP,    /* *(rbp + bp_offset) */
	BP_LOST,
};

struct unwind_rule {
	__u8 frame; /* enum unwind_frame */
	__u8 bp;    /* enum unwind_bp */
	__s16 bp_offset;
	__s32 offset;
};

#define UNWIND_PAGE_SHIFT 16
#define UNWIND_PAGE_MASK  0xffffU

struct unwind_page {
	__u32 first; /* row */
	__u32 nr;
};

#endif
