/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stacks beside an aggregation's tables, read from mapped memory: bpf/stack.bpf.h. Each CPU names a
 * stack by where it stands there; here each gets a number that is the same for all CPUs.
 */
#ifndef NHMTAP_STACKS_H
#define NHMTAP_STACKS_H

#include <stdbool.h>
#include <linux/types.h>

struct bpf_object;
struct stacks;

/* What a program delivered; see struct stored_stack in bpf/shared.h. */
struct stack {
	const __u64 *frames; /* the kernel's, then the user's, each from the innermost */
	__u32 pid;           /* whose the user's frames are; 0 if there are none */
	unsigned int kernel_frames, user_frames;
	bool full_depth; /* as deep as was asked for: there may be more */
};

/*
 * Before the object is loaded: makes room for the stacks of so many CPUs, each of no more than so many
 * frames; or sees to it that no room is taken up (0 frames, or an object that has no stacks), and
 * returns NULL.
 */
struct stacks *stacks_prepare(struct bpf_object *object, int nr_cpus, unsigned int frames);

/* Once it is loaded: maps the areas. Returns 0 or -errno. */
int stacks_map(struct stacks *stacks);
void stacks_close(struct stacks *stacks);

/* The number of what a key of the CPU names. What is no stack (enum stack_id) keeps its number. */
__u32 stacks_number(struct stacks *stacks, int cpu, __u32 id);

/* The stack of a number from STACK_FIRST on; valid while the areas are mapped. */
struct stack stacks_at(const struct stacks *stacks, __u32 number);

#endif
