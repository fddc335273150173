/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unwind tables of files, in the memory that BPF programs read. A separate thread makes them, those of the
 * smallest files first. Each can be used by programs as soon as it is done. If there is no room for a table,
 * the one that programs have not used for longest is removed; otherwise the file has no table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/stat.h>

struct unwind_memory;
struct unwind_tables;

/* The caller owns the memory, of `most` bytes, which must outlive the tables. */
struct unwind_tables *unwind_tables_open(struct unwind_memory *memory, size_t most);
void unwind_tables_close(struct unwind_tables *tables);

/* Returns the number of a file, and takes a reference, to be released by unwind_tables_put(). If the file is
 * new, its table will be made. Returns 0 if it can have none. The caller keeps the descriptor, which may be
 * that of a copy. */
__u32 unwind_tables_get(struct unwind_tables *tables, const struct stat *stat, int fd);
/* The same if its contents are not needed for that; otherwise returns 0. */
__u32 unwind_tables_known(struct unwind_tables *tables, const struct stat *stat);
/* The same for this process's vdso, the code that the kernel maps into each process. */
__u32 unwind_tables_get_vdso(struct unwind_tables *tables);
void unwind_tables_put(struct unwind_tables *tables, __u32 number);

/* Finds the bias of a mapped part of a file: an address of the process minus the file's own address. Returns
 * false if this part of the file has no code. */
bool unwind_tables_bias(struct unwind_tables *tables, __u32 number, __u64 begin, __u64 offset, __u64 *bias);

/*
 * Notes which tables programs have used since the last call. To be called when processes have mapped files:
 * some may need the room of tables that are not used any more. Returns whether a file that had no room is
 * needed and should be asked for again; unwind_tables_wants() tells which.
 */
bool unwind_tables_note_uses(struct unwind_tables *tables);
bool unwind_tables_wants(struct unwind_tables *tables, __u32 number);

/* Frees a piece of the memory as soon as no program can be reading it. */
void unwind_tables_retire(struct unwind_tables *tables, __u32 position, size_t words);

/* Waits until all tables are made and those not needed are freed, but not longer than until `deadline`
 * (CLOCK_MONOTONIC, ns). */
void unwind_tables_wait(struct unwind_tables *tables, __u64 deadline);

struct unwind_tables_account {
	size_t tables;	/* number of tables now */
	size_t refused; /* number of files that had no room, so far */
	__u64 ns;	/* time spent on making tables, so far */
};
struct unwind_tables_account unwind_tables_account(struct unwind_tables *tables);
