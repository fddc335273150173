/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of a jitdump file: tools/perf/Documentation/jitdump-specification.txt. */
#pragma once

#include <linux/types.h>

#define JITDUMP_MAGIC	0x4a695444 /* "JiTD" */
#define JITDUMP_SWAPPED 0x4454694a /* of a machine with the other order of bytes */

/* Records by their ids. The others tell of unwinding and the end. */
enum { JIT_CODE_LOAD = 0, JIT_CODE_MOVE = 1, JIT_CODE_DEBUG_INFO = 2 };

struct jitdump_header {
	__u32 magic, version, total_size, elf_mach, pad, pid;
	__u64 timestamp, flags;
};

struct jitdump_prefix {
	__u32 id, total_size; /* the size of the whole record */
	__u64 timestamp;
};

struct jitdump_load {
	__u32 pid, tid;
	__u64 vma, address, size, index;
	/* the name, which ends with 0, and the code follow */
};

struct jitdump_move {
	__u32 pid, tid;
	__u64 vma, from, to, size, index;
};

/* Lines of code whose record follows. */
struct jitdump_debug {
	__u64 address, nr;
	/* as many rows follow */
};

struct jitdump_row {
	__u64 address; /* from which on the line applies */
	__u32 line, discriminator;
	/* the file's path, which ends with 0, follows; "\xff": that of the row before */
};
