/* SPDX-License-Identifier: GPL-2.0-only */
/* The stacks of an interval, copied from the areas that BPF programs write. Each different stack is stored
 * once, and has a number that is the same for all CPUs. */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "shared.h"

struct stored_stack;
struct stacks;

/* A stack as a BPF program has stored it; see struct stored_stack in bpf/shared.h. */
struct stack {
	const __u64 *frames; /* the kernel's, then the user's, each from the innermost */
	__u32 pid;	     /* the process of the user's frames; 0 if there are none */
	unsigned int kernel_frames, user_frames;
	bool full_depth; /* it has as many frames as were requested, so there may be more */
	__u8 end;	 /* enum stack_end */
	__u8 guessed;	 /* enum stack_guessed */
};

/* What became of samples' stacks; all are samples. */
struct stack_account {
	__u64 delivered, failed, table_full, guessed, ends[STACK_UNREADABLE + 1];
};

/* `frames`: the most that were requested of each stack. */
struct stacks *stacks_new(unsigned int frames);
void stacks_release(struct stacks *stacks);

/* Returns the number of a stack, from STACK_FIRST on; a new stack is copied. */
__u32 stacks_number(struct stacks *stacks, const struct stored_stack *stored);

/* Copies a stack of `from` and returns its number in `to`. Both were made for as many frames. */
__u32 stacks_copy(struct stacks *to, const struct stacks *from, __u32 number);

/* Returns empty stacks for as many frames. */
struct stacks *stacks_like(const struct stacks *stacks);

/* The stack as it is stored, of at most `most` frames, which it points into. */
struct stack stack_from(const struct stored_stack *stored, unsigned int most);

/* Whether a frame is a return address. The innermost frame of each side is where the CPU was, or where it
 * left the user's code. All others are, unless a signal interrupted the user's code there. */
static inline bool stack_frame_returns(const struct stack *stack, unsigned int i)
{
	bool users = i >= stack->kernel_frames, innermost = !i || i == stack->kernel_frames;

	return !innermost && !(users && stack->frames[i] & FRAME_INTERRUPTED);
}

/* Returns the stack of a number; valid up to the next new stack. */
struct stack stacks_at(const struct stacks *stacks, __u32 number);

/* Adds samples with the stack of this number, or without one for the reason that it stands for. */
void stack_account_add(struct stack_account *account, const struct stacks *stacks, __u32 number,
		       __u64 samples);
void stack_account_join(struct stack_account *account, const struct stack_account *other);

/* Forgets all stacks, and frees memory that they did not need. */
void stacks_clear(struct stacks *stacks);
