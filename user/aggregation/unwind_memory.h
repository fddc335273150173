/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory with the tables and lists by which BPF programs walk stacks: bpf/unwind.h. It is made once for
 * all programs of a session, grows by 1 MiB, and is written while programs read it: memory that programs
 * could reach may be reused only after unwind_memory_wait(). May be shared by threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

#include "base/refusal.h"
#include "host/host.h"
#include "unwind.h"

struct bpf_object;
struct unwind_memory;

/* Makes the memory, of `most` bytes at most, and attaches the programs that follow forks and execs, if the
 * kernel allows that. Returns 0, or -1 with the refusal. The caller owns *memory up to
 * unwind_memory_close(). */
int unwind_memory_open(struct unwind_memory **memory, size_t most, const struct host *host,
		       struct refusal *refusal);
void unwind_memory_close(struct unwind_memory *memory);

/* Must be called before an object is loaded: makes its programs use the memory; NULL: they use none. */
void unwind_memory_share(const struct unwind_memory *memory, struct bpf_object *object);

/* Whether BPF programs follow forks and execs; otherwise user space does, a little later. */
bool unwind_memory_follows(const struct unwind_memory *memory);
/* Whether BPF programs can find the mappings of a process without a list in the kernel's own records. */
bool unwind_memory_finds(const struct unwind_memory *memory);

/* Takes room for this number of words, aligned to 64 bytes. Returns its position, or 0 if there is no room.
 * unwind_memory_give() gives it back. */
__u32 unwind_memory_take(struct unwind_memory *memory, size_t words);
void unwind_memory_give(struct unwind_memory *memory, __u32 position, size_t words);
void *unwind_memory_at(const struct unwind_memory *memory, __u32 position);

/* Frees blocks at the end that are empty. */
void unwind_memory_trim(struct unwind_memory *memory);

/* The bytes that are taken. */
size_t unwind_memory_bytes(struct unwind_memory *memory);

/* Waits until no program can still be reading what was made unreachable before the call: about ten
 * milliseconds. */
void unwind_memory_wait(const struct unwind_memory *memory);

/* Makes a file known to programs by what stat(2) says of it, with its number, or forgets it. `bias`: see
 * struct unwind_named. */
void unwind_memory_name(const struct unwind_memory *memory, const struct unwind_inode *inode, __u32 number,
			__s64 bias);
void unwind_memory_forget_name(const struct unwind_memory *memory, const struct unwind_inode *inode);

struct unwind_file *unwind_memory_file(const struct unwind_memory *memory, __u32 number);

/* Makes programs look up cached rules again, so that they mark the files that they need as used. */
void unwind_memory_look_up_anew(const struct unwind_memory *memory);

/* Sets or forgets the list of a process, by its pid in nhmtap's own namespace. Returns 0 or -errno, if there
 * is no room. */
int unwind_memory_set(const struct unwind_memory *memory, pid_t pid, const struct unwind_process *process);
void unwind_memory_forget(const struct unwind_memory *memory, pid_t pid);

/* How often programs have dropped the list of a process with a pid like this one because it executed a
 * program. */
__u32 unwind_memory_executions(const struct unwind_memory *memory, pid_t pid);
