/* SPDX-License-Identifier: GPL-2.0-only */
/* The stacks of an interval: copied out of the areas that programs write, each once, with a number that
 * is the same for all CPUs. */
#ifndef NHMTAP_STACKS_H
#define NHMTAP_STACKS_H

#include <stdbool.h>
#include <linux/types.h>

struct stored_stack;
struct stacks;

/* What a program delivered; see struct stored_stack in bpf/shared.h. */
struct stack {
	const __u64 *frames; /* the kernel's, then the user's, each from the innermost */
	__u32 pid;	     /* whose the user's frames are; 0 if there are none */
	unsigned int kernel_frames, user_frames;
	bool full_depth; /* as deep as was asked for: there may be more */
	__u8 end;	 /* enum stack_end */
	__u8 guessed;	 /* enum stack_guessed */
};

/* `frames`: how many were asked for of each stack, at most. */
struct stacks *stacks_new(unsigned int frames);
void stacks_release(struct stacks *stacks);

/* The number of a stack, from STACK_FIRST on; it is copied if it is new. */
__u32 stacks_number(struct stacks *stacks, const struct stored_stack *stored);

/* The number of a stack, or 0 if there is none like it. */
__u32 stacks_find(const struct stacks *stacks, const struct stored_stack *stored);

/* The stack of a number; valid up to the next one that is new. */
struct stack stacks_at(const struct stacks *stacks, __u32 number);

/* Forgets all stacks, and gives back memory that they have not used. */
void stacks_clear(struct stacks *stacks);

#endif
