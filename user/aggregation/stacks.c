// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/interned.h"
#include "base/memory.h"
#include "shared.h"

struct stacks {
	unsigned int frames;
	struct interned hashes; /* of the stacks, by number */
	size_t *offsets;	/* by number: the word at which the stack begins */
	size_t room;		/* the number of stacks that `offsets` has room for */
	__u64 *words;		/* the stacks behind each other, each a struct stored_stack */
	size_t nr_words, words_room;
};

struct stacks *stacks_new(unsigned int frames)
{
	struct stacks *stacks = xcalloc(1, sizeof(*stacks));

	stacks->frames = frames;
	interned_init(&stacks->hashes, sizeof(__u64));
	return stacks;
}

void stacks_release(struct stacks *stacks)
{
	if (!stacks)
		return;
	interned_release(&stacks->hashes);
	free(stacks->offsets);
	free(stacks->words);
	free(stacks);
}

static void copy_stack(struct stacks *stacks, __u32 number, const struct stored_stack *stored)
{
	size_t size = sizeof(*stored) / sizeof(__u64) + stored->kernel_frames + stored->user_frames;

	stacks->offsets = xroom(stacks->offsets, number, &stacks->room, sizeof(*stacks->offsets));
	stacks->words = xfit(stacks->words, stacks->nr_words + size, &stacks->words_room, sizeof(__u64));
	memcpy(stacks->words + stacks->nr_words, stored, size * sizeof(__u64));
	stacks->offsets[number] = stacks->nr_words;
	stacks->nr_words += size;
}

__u32 stacks_number(struct stacks *stacks, const struct stored_stack *stored)
{
	size_t before = stacks->hashes.nr;
	__u32 number = interned_number(&stacks->hashes, &stored->hash);

	if (number == before)
		copy_stack(stacks, number, stored);
	return number + STACK_FIRST;
}

static const struct stored_stack *stored_at(const struct stacks *stacks, __u32 number)
{
	return (const void *)(stacks->words + stacks->offsets[number - STACK_FIRST]);
}

__u32 stacks_copy(struct stacks *to, const struct stacks *from, __u32 number)
{
	return stacks_number(to, stored_at(from, number));
}

struct stacks *stacks_like(const struct stacks *stacks)
{
	return stacks_new(stacks->frames);
}

struct stack stack_from(const struct stored_stack *stored, unsigned int most)
{
	return (struct stack){
		.frames = stored->frames,
		.pid = stored->pid,
		.kernel_frames = stored->kernel_frames,
		.user_frames = stored->user_frames,
		.full_depth = stored->end == STACK_UNTOLD || stored->end == STACK_NO_TABLE
				      ? (unsigned int)(stored->kernel_frames + stored->user_frames) >= most
				      : stored->end == STACK_CUT,
		.end = stored->end,
		.guessed = stored->guessed,
	};
}

struct stack stacks_at(const struct stacks *stacks, __u32 number)
{
	return stack_from(stored_at(stacks, number), stacks->frames);
}

/* Whether some frames were found by frame pointers. The innermost frame of a side never is. */
static bool is_guessed(const struct stack *stack)
{
	const __u64 *users = stack->frames + stack->kernel_frames;

	for (unsigned int i = 1; stack->guessed && i < stack->user_frames; i++)
		if (stack->guessed == GUESSED_ALL || users[i] & FRAME_GUESSED)
			return true;
	return false;
}

void stack_account_add(struct stack_account *account, const struct stacks *stacks, __u32 number,
		       __u64 samples)
{
	struct stack stack;

	if (number < STACK_FIRST) {
		*(number == STACK_FULL ? &account->table_full : &account->failed) += samples;
		return;
	}
	stack = stacks_at(stacks, number);
	account->delivered += samples;
	account->ends[stack.full_depth ? STACK_CUT : stack.end] += samples;
	account->guessed += is_guessed(&stack) ? samples : 0;
}

void stack_account_join(struct stack_account *account, const struct stack_account *other)
{
	account->delivered += other->delivered;
	account->failed += other->failed;
	account->table_full += other->table_full;
	account->guessed += other->guessed;
	for (size_t i = 0; i < ARRAY_SIZE(account->ends); i++)
		account->ends[i] += other->ends[i];
}

void stacks_clear(struct stacks *stacks)
{
	stacks->offsets = xtrim(stacks->offsets, stacks->hashes.nr, &stacks->room, sizeof(*stacks->offsets));
	stacks->words = xtrim(stacks->words, stacks->nr_words, &stacks->words_room, sizeof(*stacks->words));
	stacks->nr_words = 0;
	interned_clear(&stacks->hashes);
}
