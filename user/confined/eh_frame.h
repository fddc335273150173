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
};

void eh_frame_read(struct unwind_rows *rows, const struct frame_section *section);
