// SPDX-License-Identifier: GPL-2.0-only
#include "record/chains.h"

#include <stdlib.h>
#include <string.h>

#include "aggregation/stacks.h"
#include "base/interned.h"
#include "base/memory.h"
#include "record/code.h"
#include "record/rows.h"
#include "shared.h"

/* The place of a frame. */
struct chain_place {
	__u32 code; /* number in `codes` */
	__u32 what; /* flags, see below */
};

#define PLACE_RETURNS 1 /* a return address, which may lie after the end of the calling function */
#define PLACE_GUESSED 2 /* found by frame pointer, because there was no unwind table */

/* A stack, as a list of places. */
struct chain {
	__u32 *places; /* numbers of places, from the innermost */
	unsigned int nr;
	bool truncated; /* the stack reached the maximum depth: outer frames are missing */
	__u8 end;	/* enum stack_end */
	bool guessed;	/* some places have PLACE_GUESSED */
};

struct chains {
	const struct stacks *stacks;
	struct codes *codes;
	unsigned int detail;	/* how frames are distinguished: enum code_detail */
	struct interned places; /* struct chain_place, by the place's number */
	struct interned hashes; /* hash of each chain, by the chain's number */
	struct chain *list;	/* the chains, by number */
	size_t room;
	__u32 *chain_of; /* number of the chain + 1, by number of the stack; 0: not known yet */
	size_t nr_stacks;
	/* Frames are numbered in the order in which they are written. */
	struct rows frames;
	__u32 *frame_of; /* number of the frame + 1, by number of the place; 0: not written yet */
	size_t nr_places;
	struct stack_account account;
};

struct chains *chains_new(const struct stacks *stacks, struct codes *codes, unsigned int detail)
{
	struct chains *chains = xcalloc(1, sizeof(*chains));

	chains->stacks = stacks;
	chains->codes = codes;
	chains->detail = detail;
	interned_init(&chains->places, sizeof(struct chain_place));
	interned_init(&chains->hashes, sizeof(__u64));
	return chains;
}

void chains_release(struct chains *chains)
{
	for (size_t i = 0; i < chains->hashes.nr; i++)
		free(chains->list[i].places);
	interned_release(&chains->places);
	interned_release(&chains->hashes);
	rows_release(&chains->frames);
	free(chains->list);
	free(chains->chain_of);
	free(chains->frame_of);
	free(chains);
}

/* --- taking in -------------------------------------------------------------------------------- */

/* The flags of a frame's place. */
static __u32 what_of(const struct stack *stack, unsigned int i)
{
	bool users = i >= stack->kernel_frames, innermost = !i || i == stack->kernel_frames;
	__u64 frame = stack->frames[i];
	__u32 what = 0;

	if (stack_frame_returns(stack, i))
		what |= PLACE_RETURNS;
	if (users && !innermost &&
	    (stack->guessed == GUESSED_ALL || (stack->guessed && frame & FRAME_GUESSED)))
		what |= PLACE_GUESSED;
	return what;
}

static unsigned int detail_of(const struct chains *chains, __u32 what)
{
	return chains->detail | (what & PLACE_RETURNS ? CODE_RETURN : 0);
}

bool chains_try(struct chains *chains, __u32 number, const char *comm)
{
	struct stack stack;
	__u32 ignored;

	if (number < STACK_FIRST)
		return true;
	stack = stacks_at(chains->stacks, number);
	for (unsigned int i = 0; i < stack.kernel_frames + stack.user_frames; i++)
		if (!codes_try(chains->codes, detail_of(chains, what_of(&stack, i)), stack.pid, comm,
			       FRAME_ADDRESS(stack.frames[i]), 0, &ignored))
			return false;
	return true;
}

void chains_of(struct chains *chains, const struct stacks *stacks)
{
	chains->stacks = stacks;
	if (chains->nr_stacks)
		memset(chains->chain_of, 0, chains->nr_stacks * sizeof(__u32));
}

static struct chain_place place_of(struct chains *chains, const struct stack *stack, const char *comm,
				   unsigned int i)
{
	struct chain_place place = {.what = what_of(stack, i)};

	place.code = codes_number(chains->codes, detail_of(chains, place.what), stack->pid, comm,
				  FRAME_ADDRESS(stack->frames[i]), 1);
	if (!code_tells_address(codes_at(chains->codes, place.code)))
		place.what &= ~PLACE_RETURNS;
	return place;
}

static void take_frames(struct chains *chains, struct chain *chain, const struct stack *stack,
			const char *comm)
{
	unsigned int nr = stack->kernel_frames + stack->user_frames;

	chain->places = xcalloc(nr, sizeof(*chain->places));
	chain->nr = nr;
	for (unsigned int i = 0; i < nr; i++) {
		struct chain_place place = place_of(chains, stack, comm, i);

		chain->guessed |= place.what & PLACE_GUESSED;
		chain->places[i] = interned_number(&chains->places, &place);
	}
}

/* Places are small numbers, of which some combinations have equal hashes. */
static __u64 hash_of(const struct chain *chain)
{
	__u64 hash = chain->truncated | chain->end << 1;

	for (unsigned int i = 0; i < chain->nr; i++) {
		hash = (hash ^ (chain->places[i] + 1)) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

static bool is_same(const struct chain *a, const struct chain *b)
{
	return a->nr == b->nr && !((a->truncated ^ b->truncated) | (a->end ^ b->end)) &&
	       !memcmp(a->places, b->places, a->nr * sizeof(*a->places));
}

/* Returns the number of a chain, whose places it takes over. If another chain has its hash, the next one is
 * tried. */
static __u32 number_chain(struct chains *chains, struct chain *chain)
{
	for (__u64 hash = hash_of(chain);; hash++) {
		size_t seen = chains->hashes.nr;
		__u32 number = interned_number(&chains->hashes, &hash);

		if (number == seen) {
			chains->list = xfit(chains->list, number + 1, &chains->room, sizeof(*chains->list));
			chains->list[number] = *chain;
			return number;
		}
		if (is_same(&chains->list[number], chain)) {
			free(chain->places);
			return number;
		}
	}
}

__u32 chains_number(struct chains *chains, __u32 number, const char *comm)
{
	size_t at = number - STACK_FIRST;
	struct chain chain = {0};
	struct stack stack;

	if (number < STACK_FIRST)
		return number;
	if (at >= chains->nr_stacks) {
		size_t nr = 2 * (at + 1);

		chains->chain_of = xrealloc(chains->chain_of, nr * sizeof(__u32));
		memset(chains->chain_of + chains->nr_stacks, 0, (nr - chains->nr_stacks) * sizeof(__u32));
		chains->nr_stacks = nr;
	}
	if (!chains->chain_of[at]) {
		stack = stacks_at(chains->stacks, number);
		chain.truncated = stack.full_depth;
		chain.end = stack.end;
		take_frames(chains, &chain, &stack, comm);
		chains->chain_of[at] = number_chain(chains, &chain) + 1;
	}
	return chains->chain_of[at] - 1 + STACK_FIRST;
}

/* --- giving out ------------------------------------------------------------------------------- */

static void append_frame(struct chains *chains, const struct chain_place *place)
{
	struct fields fields;

	fields_begin(&fields);
	fields_number(&fields, "id", chains->frames.nr);
	fields_code(&fields, codes_at(chains->codes, place->code));
	if (place->what & PLACE_RETURNS)
		fields_value(&fields, "return", json_true());
	if (place->what & PLACE_GUESSED)
		fields_value(&fields, "guessed", json_true());
	compact_add_fields(rows_begin(&chains->frames), &fields);
	rows_end(&chains->frames);
	fields_clear(&fields);
}

static size_t frame_of(struct chains *chains, __u32 place)
{
	size_t nr = chains->frames.nr, before = chains->nr_places;

	if (place >= before) {
		chains->nr_places = chains->places.nr;
		chains->frame_of = xrealloc(chains->frame_of, chains->nr_places * sizeof(__u32));
		memset(chains->frame_of + before, 0, (chains->nr_places - before) * sizeof(__u32));
	}
	if (!chains->frame_of[place]) {
		append_frame(chains, interned_at(&chains->places, place));
		chains->frame_of[place] = nr + 1;
	}
	return chains->frame_of[place] - 1;
}

const char *chains_lost(__u32 number)
{
	return number == STACK_FULL ? "table_full" : "failed";
}

static const char *const end_names[] = {
	[STACK_WHOLE] = "whole",   [STACK_CUT] = "truncated",	      [STACK_NO_TABLE] = "no_table",
	[STACK_NO_ROW] = "no_row", [STACK_UNREADABLE] = "unreadable",
};

const char *chains_incomplete(unsigned int end)
{
	return end_names[end];
}

static enum stack_end end_of(const struct chain *chain)
{
	return chain->truncated ? STACK_CUT : chain->end;
}

static void append_stack(struct chains *chains, struct compact *text, const struct chain *chain)
{
	compact_add_text(text, ",\"stack\":[");
	for (unsigned int i = 0; i < chain->nr; i++) {
		if (i)
			compact_add(text, ",", 1);
		compact_add_integer(text, frame_of(chains, chain->places[i]));
	}
	compact_add(text, "]", 1);
}

void chains_append(struct chains *chains, struct compact *text, __u32 number)
{
	struct chain none = {0}, *chain = number < STACK_FIRST ? &none : &chains->list[number - STACK_FIRST];
	struct fields fields;

	fields_begin(&fields);
	append_stack(chains, text, chain);
	if (number < STACK_FIRST)
		fields_string(&fields, "stack_lost", chains_lost(number));
	else if (chain->truncated)
		fields_value(&fields, "truncated", json_true());
	else if (chain->end > STACK_CUT)
		fields_string(&fields, "incomplete", end_names[chain->end]);
	compact_add_fields(text, &fields);
	fields_clear(&fields);
}

void chains_put_frames(struct chains *chains, json_t *record)
{
	rows_put(&chains->frames, record, "frames");
}

void chains_count(struct chains *chains, __u32 number, __u64 samples)
{
	struct stack_account *account = &chains->account;
	const struct chain *chain;

	if (number < STACK_FIRST) {
		*(number == STACK_FULL ? &account->table_full : &account->failed) += samples;
		return;
	}
	chain = &chains->list[number - STACK_FIRST];
	account->delivered += samples;
	account->ends[end_of(chain)] += samples;
	account->guessed += chain->guessed ? samples : 0;
}

void chains_count_others(struct chains *chains, const struct stack_account *others)
{
	stack_account_join(&chains->account, others);
}

json_t *chains_account(const struct chains *chains, bool by_tables)
{
	const struct stack_account *account = &chains->account;
	json_t *value = json_pack("{s:I, s:I, s:I, s:I}", "delivered", (json_int_t)account->delivered,
				  "truncated", (json_int_t)account->ends[STACK_CUT], "failed",
				  (json_int_t)account->failed, "table_full", (json_int_t)account->table_full);

	if (!by_tables)
		return value;
	for (size_t i = STACK_WHOLE; i <= STACK_UNREADABLE; i++)
		if (i != STACK_CUT)
			json_object_set_new(value, end_names[i], json_integer(account->ends[i]));
	json_object_set_new(value, "guessed", json_integer(account->guessed));
	return value;
}
