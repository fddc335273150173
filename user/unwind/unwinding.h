/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What programs need to walk the stacks of processes by tables: for each process, which file is mapped where,
 * made of the session's mappings as they change. See bpf/unwind.bpf.h.
 */
#ifndef NHMTAP_UNWINDING_H
#define NHMTAP_UNWINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "host/host.h"
#include "naming/mappings.h"
#include "refusal.h"

struct unwind_memory;
struct unwinding;

/* What may be taken of memory in any case. */
#define UNWIND_MEMORY (64UL << 20)

/* What it takes besides: the lists of processes, files and inodes, a first block, and making a table, in a
 * process of its own. As measured. */
#define UNWIND_BLOCK	    (1UL << 20)
#define UNWIND_MEMORY_LEAST ((15UL << 20) + UNWIND_BLOCK)

/*
 * Follows what the mappings tell from now on, so it is to be opened before they are told of anything. `most`
 * bytes of memory, 0: UNWIND_MEMORY. Returns 0, or -1 with the refusal. The mappings stay the caller's; the
 * caller owns *unwinding up to unwinding_close().
 */
int unwinding_open(struct unwinding **unwinding, struct mappings *mappings, size_t most,
		   const struct host *host, struct refusal *refusal);
void unwinding_close(struct unwinding *unwinding);

/* Publishes to the BPF programs what the mappings have learnt since the last call; of processes that have
 * just begun only `at_once`, as far as programs find their way in them. Returns whether some are left. */
bool unwinding_publish(struct unwinding *unwinding, bool at_once);

/* Makes the tables of a command's program, and of the libraries that it will load, as far as that can be told
 * before it is executed. */
void unwinding_expect(struct unwinding *unwinding, char **command);

/* Waits until all tables are made that are wanted, no longer than `ns`. */
void unwinding_wait(struct unwinding *unwinding, __u64 ns);

struct unwind_memory *unwinding_memory(const struct unwinding *unwinding);

struct unwinding_account {
	size_t tables;
	size_t refused; /* files whose tables found no room, so far */
	size_t bytes;	/* of tables and lists */
	__u64 ns;	/* that it took to make tables, so far */
	bool follows;	/* programs follow forks and execs, not the kernel's notes */
};
struct unwinding_account unwinding_account(const struct unwinding *unwinding);

#endif
