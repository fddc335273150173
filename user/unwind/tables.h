/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables of files, in the memory that programs read. A thread of its own makes them, the smallest files
 * first; each is there for programs the moment it is done. What finds no room takes that of what programs
 * have not used for longest, or has no table.
 */
#ifndef NHMTAP_UNWIND_TABLES_H
#define NHMTAP_UNWIND_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct unwind_memory;
struct unwind_tables;

/* The memory, of `most` bytes, stays the caller's, and must live longer. */
struct unwind_tables *unwind_tables_open(struct unwind_memory *memory, size_t most);
void unwind_tables_close(struct unwind_tables *tables);

/*
 * The number of a file, whose table will be made if it is new; from then on, the caller has a count of it up
 * to unwind_tables_put(). 0: it can have none. The descriptor stays the caller's.
 */
__u32 unwind_tables_get(struct unwind_tables *tables, int fd);
/* The same of the code that the kernel maps into each process: this process's. */
__u32 unwind_tables_get_vdso(struct unwind_tables *tables);
void unwind_tables_put(struct unwind_tables *tables, __u32 number);

/* What an address of a process less the file's own address is, where this part of the file is mapped there.
 * False: the file has no code in this part. */
bool unwind_tables_bias(struct unwind_tables *tables, __u32 number, __u64 begin, __u64 offset, __u64 *bias);

/*
 * Notes which tables programs have used since the last time. Processes have mapped files: some may need room
 * that others do not use any more. Returns whether a file that found no room is needed, and should be asked
 * for again: unwind_tables_wants() says which.
 */
bool unwind_tables_note_uses(struct unwind_tables *tables);
bool unwind_tables_wants(struct unwind_tables *tables, __u32 number);

/* Gives room in the memory back once no program can be in it. */
void unwind_tables_retire(struct unwind_tables *tables, __u32 position, size_t words);

/* Waits until all tables are made, and those given back that are not needed, up to this moment
 * (CLOCK_MONOTONIC, ns). */
void unwind_tables_wait(struct unwind_tables *tables, __u64 deadline);

struct unwind_tables_account {
	size_t tables;	/* there are now */
	size_t refused; /* files that had no room, so far */
	__u64 ns;	/* that it took to make tables, so far */
};
struct unwind_tables_account unwind_tables_account(struct unwind_tables *tables);

#endif
