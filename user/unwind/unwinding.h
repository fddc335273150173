/* SPDX-License-Identifier: GPL-2.0-only */
/* The data by which BPF programs walk the stacks of processes with unwind tables: for each process, which
 * file is mapped where. It is made from the session's mappings as they change. See bpf/unwind.bpf.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/refusal.h"
#include "host/host.h"
#include "naming/mappings.h"

struct unwind_memory;
struct unwinding;

/* The limit of memory for tables and lists. */
#define UNWIND_MEMORY (64UL << 20)

/* Memory that is needed in addition, as measured: the lists of processes, files and inodes, a first block,
 * and making a table in a separate process. */
#define UNWIND_BLOCK	    (1UL << 20)
#define UNWIND_MEMORY_LEAST ((15UL << 20) + UNWIND_BLOCK)

/*
 * Follows all changes of the mappings, so it must be called before the mappings get any notes. `most`: limit
 * of memory in bytes, 0: UNWIND_MEMORY. Returns 0, or -1 with the refusal. The caller owns the mappings, and
 * *unwinding, which must be given to unwinding_close().
 */
int unwinding_open(struct unwinding **unwinding, struct mappings *mappings, size_t most,
		   const struct host *host, struct refusal *refusal);
void unwinding_close(struct unwinding *unwinding);

/*
 * Publishes to the BPF programs what has changed in the mappings since the last call. New processes for which
 * programs find the way without a list are left for a later call, unless `at_once`. Returns whether some are
 * left.
 */
bool unwinding_publish(struct unwinding *unwinding, bool at_once);

/* Starts making the tables of a command's program and of its libraries, as far as these can be determined
 * before the program is executed. */
void unwinding_expect(struct unwinding *unwinding, char **command);

/* Waits until all requested tables are made, but not longer than `ns`. */
void unwinding_wait(struct unwinding *unwinding, __u64 ns);

struct unwind_memory *unwinding_memory(const struct unwinding *unwinding);

struct unwinding_account {
	size_t tables;
	size_t refused; /* files whose tables had no room, so far */
	size_t bytes;	/* of tables and lists */
	__u64 ns;	/* time spent on making tables, so far */
	bool follows;	/* programs follow forks and execs themselves, without the kernel's notes */
};
struct unwinding_account unwinding_account(const struct unwinding *unwinding);
