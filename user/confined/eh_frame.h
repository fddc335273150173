/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what a file's .eh_frame or .debug_frame says about its functions. Whatever the section contains,
 * nothing beyond it is read, and the table has at most two rows for each of its bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct unwind_rows;

struct frame_section {
	const unsigned char *bytes;
	size_t size;
	__u64 address; /* at run time, before relocation */
	bool debug;    /* it is .debug_frame */
	bool narrow;   /* of a 32-bit file */
};

void eh_frame_read(struct unwind_rows *rows, const struct frame_section *section);

/* Calls `visit` for each function: its first address, and the one after its last. */
void eh_frame_functions(const struct frame_section *section, void (*visit)(void *of, __u64 begin, __u64 end),
			void *of);
