/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory in which programs find tables and lists by which they walk stacks: bpf/unwind.h. It is made once
 * for all programs of a session, grows by 1 MiB, and is written while programs read it: what is taken away
 * from them may be used again only after unwind_memory_wait(). Threads may share it.
 */
#ifndef NHMTAP_UNWIND_MEMORY_H
#define NHMTAP_UNWIND_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

#include "host/host.h"
#include "refusal.h"
#include "unwind.h"

struct bpf_object;
struct unwind_memory;

/* Makes it, of `most` bytes at most, and attaches the programs that follow forks and execs, where the kernel
 * lets them. Returns 0, or -1 with the refusal. The caller owns *memory up to unwind_memory_close(). */
int unwind_memory_open(struct unwind_memory **memory, size_t most, const struct host *host,
		       struct refusal *refusal);
void unwind_memory_close(struct unwind_memory *memory);

/* Before an object is loaded: has its programs use the memory; NULL: they have none. */
void unwind_memory_share(const struct unwind_memory *memory, struct bpf_object *object);

/* Whether programs follow forks and execs; else user space does, a little later. */
bool unwind_memory_follows(const struct unwind_memory *memory);
/* Whether programs find what a process without a list has mapped, by what the kernel knows. */
bool unwind_memory_finds(const struct unwind_memory *memory);

/* Room for so many words, at a multiple of 64 bytes: where it is. 0: there is none. */
__u32 unwind_memory_take(struct unwind_memory *memory, size_t words);
void unwind_memory_give(struct unwind_memory *memory, __u32 position, size_t words);
void *unwind_memory_at(const struct unwind_memory *memory, __u32 position);

/* Gives blocks at the end that nothing lies in back to the kernel. */
void unwind_memory_trim(struct unwind_memory *memory);

/* Bytes that are taken. */
size_t unwind_memory_bytes(struct unwind_memory *memory);

/* Waits until no program can be in what was out of its reach before: some ten milliseconds. */
void unwind_memory_wait(const struct unwind_memory *memory);

/* Names a file to programs by what stat(2) says of it, or forgets the name. `bias`: see struct unwind_named.
 */
void unwind_memory_name(const struct unwind_memory *memory, const struct unwind_inode *inode, __u32 number,
			__s64 bias);
void unwind_memory_forget_name(const struct unwind_memory *memory, const struct unwind_inode *inode);

struct unwind_file *unwind_memory_file(const struct unwind_memory *memory, __u32 number);

/* Has programs look up rules that they have kept: then they tell again which files they need. */
void unwind_memory_look_up_anew(const struct unwind_memory *memory);

/* Of a process, by its pid as nhmtap's own namespace has it. Setting may find no room: returns 0 or
 * -errno. */
int unwind_memory_set(const struct unwind_memory *memory, pid_t pid, const struct unwind_process *process);
void unwind_memory_forget(const struct unwind_memory *memory, pid_t pid);

/* How often programs have forgotten processes of a pid like this one, because they executed something. */
__u32 unwind_memory_executions(const struct unwind_memory *memory, pid_t pid);

#endif
