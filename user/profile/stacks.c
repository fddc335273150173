// SPDX-License-Identifier: GPL-2.0-only
#include "profile/stacks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "interned.h"
#include "memory.h"
#include "record/code.h"
#include "record/entry.h"
#include "record/key.h"
#include "record/record.h"
#include "shared.h"

/* Where a frame is. */
struct place {
	__u32 code; /* its number */
	__u32 what; /* of the following */
};

#define PLACE_RETURNS 1 /* it is where a call returns to, which may be behind the calling function */
#define PLACE_GUESSED 2 /* found by a frame pointer because there was no table */

/* A stack by its places. */
struct chain {
	__u32 *places; /* numbers, from the innermost */
	unsigned int nr;
	bool truncated; /* as deep as was asked for: what lies further out is missing */
	__u8 end;	/* enum stack_end */
	bool guessed;	/* some of its places are */
};

struct called {
	const struct host *host;
	const struct layout *layout;
	const struct reading *reading;
	struct codes *codes;
	unsigned int detail;	    /* of frames: of enum code_detail */
	bool by_tables;		    /* users' stacks were walked by tables, as far as there were any */
	const struct member *stack; /* of the key */
	struct interned places;	    /* struct place, by number */
	struct interned hashes;	    /* of chains, by number */
	struct chain *chains;	    /* likewise */
	size_t room;
	__u32 *chain_of; /* the chain's number + 1, by the number of the reading's stack */
	size_t nr_stacks;
	/* Each entry once: the program's key with the chain's number, from STACK_FIRST on, as its stack. */
	struct interned keys;
	__u64 *sums; /* by the key's number: layout.value_size bytes each */
	struct entry *entries;
};

static __u32 *stack_of(const struct called *called, const void *key)
{
	return (__u32 *)((char *)key + called->stack->offset);
}

/* --- taking in -------------------------------------------------------------------------------- */

static bool tells_address(const struct code *code)
{
	return code->has_offset || code->has_address;
}

static struct place place_of(struct called *called, const struct stack *stack, const char *comm,
			     unsigned int i)
{
	bool users = i >= stack->kernel_frames, innermost = !i || i == stack->kernel_frames;
	__u64 frame = stack->frames[i];
	struct place place = {0};

	/* The first of each side is where the CPU was, or where it left the user's code. */
	if (!innermost && !(users && frame & FRAME_INTERRUPTED))
		place.what |= PLACE_RETURNS;
	if (users && !innermost &&
	    (stack->guessed == GUESSED_ALL || (stack->guessed && frame & FRAME_GUESSED)))
		place.what |= PLACE_GUESSED;
	place.code =
		codes_number(called->codes, called->detail | (place.what & PLACE_RETURNS ? CODE_RETURN : 0),
			     stack->pid, comm, FRAME_ADDRESS(frame), 1);
	if (!tells_address(codes_at(called->codes, place.code)))
		place.what &= ~PLACE_RETURNS;
	return place;
}

static void take_frames(struct called *called, struct chain *chain, const struct stack *stack,
			const char *comm)
{
	unsigned int nr = stack->kernel_frames + stack->user_frames;

	chain->places = xcalloc(nr, sizeof(*chain->places));
	chain->nr = nr;
	for (unsigned int i = 0; i < nr; i++) {
		struct place place = place_of(called, stack, comm, i);

		chain->guessed |= place.what & PLACE_GUESSED;
		chain->places[i] = interned_number(&called->places, &place);
	}
}

/* The same mixing as of the program's own hash: bpf/table.bpf.h. */
static __u64 hash_of(const struct chain *chain)
{
	__u64 hash = chain->truncated | chain->end << 1;

	for (unsigned int i = 0; i < chain->nr; i++) {
		hash = (hash ^ (chain->places[i] + 1)) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

/* The number of a chain, which is taken over. */
static __u32 number_chain(struct called *called, struct chain *chain)
{
	__u64 hash = hash_of(chain);
	size_t seen = called->hashes.nr;
	__u32 number = interned_number(&called->hashes, &hash);

	if (number < seen) {
		free(chain->places);
		return number;
	}
	if (number >= called->room) {
		called->room = 2 * (number + 1);
		called->chains = xrealloc(called->chains, called->room * sizeof(*called->chains));
	}
	called->chains[number] = *chain;
	return number;
}

/* What a key's stack becomes: the number of a chain, or why there is none. */
static __u32 chain_of(struct called *called, __u32 number, const char *comm)
{
	size_t at = number - STACK_FIRST;
	struct chain chain = {0};
	struct stack stack;

	if (number < STACK_FIRST)
		return number;
	if (at >= called->nr_stacks) {
		size_t nr = 2 * (at + 1);

		called->chain_of = xrealloc(called->chain_of, nr * sizeof(__u32));
		memset(called->chain_of + called->nr_stacks, 0, (nr - called->nr_stacks) * sizeof(__u32));
		called->nr_stacks = nr;
	}
	if (!called->chain_of[at]) {
		stack = stacks_at(called->reading->stacks, number);
		chain.truncated = stack.full_depth;
		chain.end = stack.end;
		take_frames(called, &chain, &stack, comm);
		called->chain_of[at] = number_chain(called, &chain) + 1;
	}
	return called->chain_of[at] - 1 + STACK_FIRST;
}

static void take_entry(struct called *called, const struct entry *entry)
{
	const struct layout *layout = called->layout;
	__u64 words[layout->key_size / sizeof(__u64)];
	__u32 number;

	memcpy(words, entry->key, layout->key_size);
	*stack_of(called, words) = chain_of(called, *stack_of(called, words), key_comm(layout, words));
	number = interned_number(&called->keys, words);
	values_add(layout, called->sums + number * (layout->value_size / sizeof(__u64)), entry->values);
}

struct called *called_of(const struct host *host, struct codes *codes, unsigned int detail, bool by_tables,
			 const struct layout *layout, const struct reading *reading)
{
	struct called *called = xcalloc(1, sizeof(*called));
	size_t words = layout->value_size / sizeof(__u64);

	called->host = host;
	called->codes = codes;
	called->detail = detail;
	called->by_tables = by_tables;
	called->layout = layout;
	called->reading = reading;
	for (size_t i = 0; i < layout->nr_keys; i++)
		if (!strcmp(layout->keys[i].type, "stack_id_t"))
			called->stack = &layout->keys[i];
	interned_init(&called->places, sizeof(struct place));
	interned_init(&called->hashes, sizeof(__u64));
	interned_init(&called->keys, layout->key_size);
	called->sums = xcalloc(reading->nr_entries + 1, words * sizeof(__u64));
	for (size_t i = 0; i < reading->nr_entries; i++)
		take_entry(called, &reading->entries[i]);
	called->entries = xcalloc(called->keys.nr + 1, sizeof(*called->entries));
	for (size_t i = 0; i < called->keys.nr; i++)
		called->entries[i] = (struct entry){interned_at(&called->keys, i), called->sums + i * words};
	entries_sort(layout, called->entries, called->keys.nr);
	return called;
}

void called_release(struct called *called)
{
	for (size_t i = 0; i < called->hashes.nr; i++)
		free(called->chains[i].places);
	interned_release(&called->places);
	interned_release(&called->hashes);
	interned_release(&called->keys);
	free(called->chains);
	free(called->chain_of);
	free(called->sums);
	free(called->entries);
	free(called);
}

size_t called_count(const struct called *called)
{
	return called->keys.nr;
}

/* --- giving out ------------------------------------------------------------------------------- */

static json_t *frame_value(const struct called *called, const struct place *place, __u32 number)
{
	json_t *value = json_pack("{s:I}", "id", (json_int_t)number);

	json_object_update_new(value, code_value(codes_at(called->codes, place->code)));
	if (place->what & PLACE_RETURNS)
		json_object_set_new(value, "return", json_true());
	if (place->what & PLACE_GUESSED)
		json_object_set_new(value, "guessed", json_true());
	return value;
}

/* Frames are numbered anew, in the order in which the entries name them. */
struct numbering {
	__u32 *number; /* + 1, by the place's */
	__u32 nr;
	json_t *frames;
};

static __u32 renumber(const struct called *called, struct numbering *numbering, __u32 place)
{
	if (!numbering->number[place]) {
		json_array_append_new(
			numbering->frames,
			frame_value(called, interned_at(&called->places, place), numbering->nr));
		numbering->number[place] = ++numbering->nr;
	}
	return numbering->number[place] - 1;
}

static const char *lack(__u32 number)
{
	return number == STACK_FULL ? "table_full" : "failed";
}

static const char *const end_names[] = {
	[STACK_WHOLE] = "whole",   [STACK_CUT] = "truncated",	      [STACK_NO_TABLE] = "no_table",
	[STACK_NO_ROW] = "no_row", [STACK_UNREADABLE] = "unreadable",
};

static enum stack_end end_of(const struct chain *chain)
{
	return chain->truncated ? STACK_CUT : chain->end;
}

static void put_stack(const struct called *called, json_t *value, __u32 number, struct numbering *numbering)
{
	json_t *stack = json_array();
	const struct chain *chain;

	json_object_set_new(value, "stack", stack);
	if (number < STACK_FIRST) {
		json_object_set_new(value, "stack_lost", json_string(lack(number)));
		return;
	}
	for (unsigned int i = 0; i < called->chains[number - STACK_FIRST].nr; i++) {
		__u32 place = called->chains[number - STACK_FIRST].places[i];

		json_array_append_new(stack, json_integer(renumber(called, numbering, place)));
	}
	chain = &called->chains[number - STACK_FIRST];
	if (chain->truncated)
		json_object_set_new(value, "truncated", json_true());
	else if (chain->end > STACK_CUT)
		json_object_set_new(value, "incomplete", json_string(end_names[chain->end]));
}

static json_t *called_value(const struct called *called, const struct entry *entry,
			    struct numbering *numbering)
{
	const struct layout *layout = called->layout;
	json_t *value = json_object();

	put_stack(called, value, *stack_of(called, entry->key), numbering);
	for (size_t i = 0; i < layout->nr_keys; i++)
		if (layout->keys[i].shown && &layout->keys[i] != called->stack)
			json_object_set_new(value, layout->keys[i].name,
					    member_value(called->host, &layout->keys[i], entry->key));
	put_values(value, called->host, layout, entry->values);
	return value;
}

/* What became of the samples' stacks. */
static json_t *account(const struct called *called)
{
	json_int_t delivered = 0, failed = 0, full = 0, guessed = 0, ends[STACK_UNREADABLE + 1] = {0};
	json_t *value;

	for (size_t i = 0; i < called->keys.nr; i++) {
		__u32 number = *stack_of(called, called->entries[i].key);
		__u64 samples = called->entries[i].values[0];

		if (number == STACK_FULL)
			full += samples;
		else if (number < STACK_FIRST)
			failed += samples;
		else
			delivered += samples;
		if (number < STACK_FIRST)
			continue;
		ends[end_of(&called->chains[number - STACK_FIRST])] += samples;
		guessed += called->chains[number - STACK_FIRST].guessed ? samples : 0;
	}
	value = json_pack("{s:I, s:I, s:I, s:I}", "delivered", delivered, "truncated", ends[STACK_CUT],
			  "failed", failed, "table_full", full);
	if (!called->by_tables)
		return value;
	for (size_t i = STACK_WHOLE; i <= STACK_UNREADABLE; i++)
		if (i != STACK_CUT)
			json_object_set_new(value, end_names[i], json_integer(ends[i]));
	json_object_set_new(value, "guessed", json_integer(guessed));
	return value;
}

void called_put(struct called *called, json_t *record, size_t top)
{
	struct numbering numbering = {xcalloc(called->places.nr + 1, sizeof(__u32)), 0, json_array()};
	json_t *entries = json_array();

	json_object_set_new(record, "stacks", account(called));
	for (size_t i = 0; i < top; i++)
		json_array_append_new(entries, called_value(called, &called->entries[i], &numbering));
	if (top < called->keys.nr)
		json_object_set_new(record, "rest",
				    rest_value(called->host, called->layout, called->entries + top,
					       called->keys.nr - top));
	json_object_set_new(record, "frames", numbering.frames);
	json_object_set_new(record, "entries", entries);
	free(numbering.number);
}
