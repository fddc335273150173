/* SPDX-License-Identifier: GPL-2.0-only */
/* The code of a file. */
#pragma once

#include <stddef.h>
#include <linux/types.h>

struct code_bytes {
	struct code_part {
		__u64 address, size; /* before relocation */
		__u8 *bytes;
	} * list;
	size_t nr;
	__u64 size; /* of all parts */
};
