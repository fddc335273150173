/* SPDX-License-Identifier: GPL-2.0-only */
/* The code of a file, and what is needed to tell what it accesses. */
#pragma once

#include <stddef.h>
#include <linux/types.h>

#include "confined/thread_slots.h"
#include "unwind/table.h"

struct code_bytes {
	struct code_part {
		__u64 address, size; /* before relocation */
		__u8 *bytes;
	} * list;
	size_t nr;
	struct unwind_table frames; /* empty: there is none */
	__u64 thread_size; /* from where a thread's copies of the program's variables begin to the thread
			      pointer; 0: it has none */
	struct thread_slots slots;
	__u64 size; /* of all of this */
};
