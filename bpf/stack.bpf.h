/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stack of a sample as an id in the key of an aggregation; see struct stored_stack. The kernel's frames
 * come from its own call chain. The user's frames come from the kernel's walk by frame pointers, or are
 * walked by tables: unwind.bpf.h.
 *
 * Frames are written where the next new stack would be stored. Most stacks are already known: then that room
 * is simply not taken, and nothing had to be copied.
 */
#pragma once

#include "task.bpf.h"
#include "wake.bpf.h"
#include "words.bpf.h"
#include "unwind.bpf.h"

/* Set by user space before loading. */
const volatile _Bool kernel_stacks, user_stacks;
const volatile __u32 max_stack = STACK_DEFAULT; /* frames of both sides together */
const volatile __u32 chain_marks;		/* words in a side's chain that are not frames: 0 or 1 */

#define STACK_LONGEST (sizeof(struct stored_stack) / 8 + STACK_FRAMES)

struct stacks {
	struct stacks_head head;
	__u64 words[STACK_WORDS + STACK_LONGEST]; /* there is always room for one more stack, which may turn
						     out to be known */
	struct stack_slot {
		__u64 hash;
		__u32 id;
		__u32 epoch; /* the slot is free if this is not the head's epoch */
	} slots[STACK_SLOTS];
	struct unwind_walk
		walk; /* too large for a program's stack (512 bytes), which all its functions share */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2); /* user space makes it twice the number of CPUs: one area per generation */
	__type(key, __u32);
	__type(value, struct stacks);
} stack_areas SEC(".maps");

/* Functions with a loop are not static: the kernel then verifies each once, by itself, instead of once for
 * each path that leads to a call. It knows the value of max_stack, so it follows a loop no further than
 * that. */

/* Writes the frames of one side (0 or BPF_F_USER_STACK) behind the `before` frames that are there, up to
 * max_stack in all. Returns how many were written. */
static __always_inline __u64 get_frames(struct bpf_perf_event_data *ctx, __u64 *frames, __u64 before,
					__u64 side)
{
	__u64 room = before < max_stack ? max_stack - before : 0;
	long bytes = bpf_get_stack(ctx, frames + before, room * sizeof(*frames), side | chain_marks);

	return bytes > 0 ? bytes / sizeof(*frames) & STACK_FRAMES : 0;
}

/* Returns the hash of the stack of `nr` frames that begins at the given word. */
__noinline __u64 hash_stack(const struct stacks *stacks, __u64 word, __u64 nr)
{
	const struct stored_stack *stack;
	__u64 hash;

	if (!stacks)
		return 0;
	stack = (const struct stored_stack *)&stacks->words[word & (STACK_WORDS - 1)];
	hash = hash_word(0, *(const __u64 *)&stack->pid);
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < max_stack; i++) {
		if (i >= nr)
			break;
		hash = hash_word(hash, stack->frames[i]);
	}
	return hash;
}

/* Returns the id of the stack with this hash. A new stack gets the id `next`, or STACK_FULL if there is no
 * free slot for it or no room for its words (`room` is 0). */
__noinline __u32 find_stack(struct stacks *stacks, __u64 hash, __u32 next, __u32 room)
{
	__u32 at = hash;

	if (!stacks)
		return STACK_FULL;
#pragma nounroll
	for (__u32 i = 1; i <= TABLE_PROBES; at += i++) {
		struct stack_slot *slot = &stacks->slots[at & (STACK_SLOTS - 1)];

		if (slot->epoch == stacks->head.epoch) {
			if (slot->hash == hash)
				return slot->id;
			continue;
		}
		if (!room)
			break;
		slot->hash = hash;
		slot->id = next;
		slot->epoch = stacks->head.epoch;
		return next;
	}
	return STACK_FULL;
}

/* Writes the walk's current frame at the given word, and goes on to its caller. Returns 0, or the reason why
 * there is no caller: enum stack_end. */
__noinline int walk_frame(struct stacks *stacks, __u64 word, struct unwind_walk *walk)
{
	int end;

	if (!tables_walk || !stacks || !walk || word >= STACK_WORDS + STACK_LONGEST)
		return STACK_CUT;
	stacks->words[word] = walk->ip | walk->mark;
	end = unwind_step(walk);
	/* Nothing called the code that ends a signal's handler: the kernel made it the handler's caller. */
	if (walk->mark == FRAME_INTERRUPTED)
		stacks->words[word] |= FRAME_INTERRUPTED;
	if (likely(!(end & STUCK)))
		return end;
	return unwind_guess_frameless(walk) ? unwind_guess(walk, end & ~STUCK) : 0;
}

/* Walks the user's frames of the stack that begins at the given word, and writes them behind its `kernel`
 * frames. Returns the number of the user's frames; its upper 16 bits say how the walk ended: enum
 * stack_end. */
__noinline __u32 walk_stack(struct stacks *stacks, __u64 word, __u32 kernel, struct unwind_walk *walk)
{
	__u32 nr, end = STACK_CUT;

	if (!tables_walk || !stacks || !walk)
		return 0;
	word += sizeof(struct stored_stack) / 8 + kernel;
#pragma clang loop unroll(disable)
	for (nr = 0; nr < max_stack; nr++) {
		if (kernel + nr >= max_stack)
			break;
		end = walk_frame(stacks, word + nr, walk);
		if (end)
			return end << 16 | (nr + 1);
	}
	return STACK_CUT << 16 | nr;
}

/* Whether the sample was taken in user mode; it has no frames of the kernel then. */
static __always_inline _Bool in_user_mode(struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.cs & 3) == 3;
}

/* Writes the user's frames behind the kernel's and returns how many there are. The low byte of *how is the
 * stack's end (enum stack_end), the byte above it enum stack_guessed. */
static __always_inline __u64 user_frames(struct bpf_perf_event_data *ctx, struct stacks *stacks, __u64 used,
					 __u64 kernel, __u32 *how)
{
	struct stored_stack *stack = (struct stored_stack *)&stacks->words[used];
	struct unwind_walk *walk = &stacks->walk;
	__u64 user;
	__u32 done;

	if (tables_walk && unwind_begin(ctx, walk)) {
		done = walk_stack(stacks, used, kernel, walk);
		*how = done >> 16 | (walk->guessed ? GUESSED_SOME : 0) << 8;
		return done & STACK_FRAMES;
	}
	user = get_frames(ctx, stack->frames, kernel, BPF_F_USER_STACK);
	if (tables_walk && user) /* the process has no list: the kernel has walked all frames but the first by
				    frame pointers */
		*how = STACK_NO_TABLE | GUESSED_ALL << 8;
	else if (tables_walk)
		*how = STACK_WHOLE; /* a kernel thread, which has no user's frames */
	return user;
}

/* Returns the id of the sample's stack in the given generation. Not inline: its local variables would make
 * the stack of programs that take no stacks larger than 64 bytes, and Linux (6.13) allocates such a stack
 * elsewhere, in memory that is not in the cache. */
static __noinline __u32 stack_of(struct bpf_perf_event_data *ctx, __u32 which)
{
	__u32 area = 2 * bpf_get_smp_processor_id() + which;
	struct stacks *stacks = bpf_map_lookup_elem(&stack_areas, &area);
	struct stored_stack *stack;
	__u64 used, kernel = 0, user = 0, end;
	__u32 id, how = 0;

	if (!stacks)
		return STACK_FAILED;
	used = stacks->head.used & (STACK_WORDS - 1); /* always less; the mask tells the verifier so */
	stack = (struct stored_stack *)&stacks->words[used];
	if (kernel_stacks && !in_user_mode(ctx))
		kernel = get_frames(ctx, stack->frames, 0, 0);
	if (user_stacks)
		user = user_frames(ctx, stacks, used, kernel, &how);
	if (!kernel && !user)
		return STACK_FAILED;
	stack->pid = user ? current_ids() >> 32 : 0;
	stack->kernel_frames = kernel;
	stack->user_frames = user;
	stack->end = how;
	stack->guessed = how >> 8;
	stack->hash = hash_stack(stacks, used, kernel + user);
	end = used + sizeof(*stack) / 8 + kernel + user;
	id = find_stack(stacks, stack->hash, used + STACK_FIRST, end < STACK_WORDS);
	if (id != used + STACK_FIRST)
		return id;
	stacks->head.used = end;
	if (end >= FILLING(STACK_WORDS) && !stacks->head.told)
		stacks->head.told = wake_reader();
	return id;
}
