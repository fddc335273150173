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

/* A section .eh_frame that is read in pieces. */
struct frame_source {
	__u64 size;
	__u64 address; /* at run time, before relocation */
	bool narrow;   /* of a 32-bit file */
	/* Reads bytes from an offset in the section on. Returns false if it can't. */
	bool (*read)(const void *of, void *to, size_t size, __u64 offset);
	const void *of;
};

typedef void frame_visit(void *of, __u64 begin, __u64 end);

/* Calls `visit` for each function: its first address, and the one after its last. It takes at most `most`
 * bytes for a piece of the section. Returns false if functions are left out, because they are behind an entry
 * that does not fit. */
bool eh_frame_functions(const struct frame_source *source, size_t most, frame_visit *visit, void *of);
