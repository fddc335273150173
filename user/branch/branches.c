// SPDX-License-Identifier: GPL-2.0-only
#include "branch/branches.h"

#include <stdlib.h>
#include <string.h>

#include "aggregation/remainder.h"
#include "base/array.h"
#include "base/interned.h"
#include "base/memory.h"
#include "record/chains.h"
#include "record/code.h"
#include "record/entry.h"
#include "record/key.h"
#include "record/rows.h"
#include "shared.h"

struct branches {
	const struct host *host;
	const struct layout *layout;
	struct codes *codes;
	struct branches_asked asked;
	const struct member *stack; /* member of the key; NULL: there is none */
	struct chains *chains;
	/* Each edge and range once. The keys are those of the BPF program, with numbers of codes instead of
	 * addresses, and the number of a chain instead of the stack. A pid that is not to be shown is 0. */
	struct interned keys;
	struct branch_sums {
		__u64 count, mispredicted;
		__u64 period, mispredicted_period; /* of the samples that they came with */
	} * sums;				   /* indexed by the key's number */
	size_t room;				   /* the number of keys that there is room for in `sums` */
	__u32 *order;				   /* numbers of keys, by descending weight */
	size_t nr_chosen;			   /* the first of `order` that are to be kept */
	/* Keys that were not kept: how many, and their sum. Of branches, and of ranges. */
	struct shed_branches {
		__u64 nr;
		struct branch_sums sum;
	} shed[2];
	__u64 depths[BRANCHES_MOST + 1]; /* samples, by the number of their branches */
	size_t deepest;
	__u64 mispredicted, unresolved, broken; /* sums of counts */
	__u64 period;				/* of each branch of each sample */
	__u64 lost;				/* edges and ranges for which there was no room */
};

/* Stands for the number of a code: the target of branches if targets are not asked for. */
#define NO_CODE (~0ULL)

static const struct member *member(const struct member *list, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

static void *of_key(const struct branches *branches, const void *key, const char *name)
{
	const struct layout *layout = branches->layout;

	return (char *)key + member(layout->keys, layout->nr_keys, name)->offset;
}

/* How often it occurred, from the head of its value. */
static __u64 count_of(const struct entry *entry)
{
	return ((const struct value_head *)entry->values)->samples;
}

static __u32 kind_of(const struct branches *branches, const void *key)
{
	return *(__u32 *)of_key(branches, key, "kind");
}

static bool is_range(const struct branches *branches, const void *key)
{
	return kind_of(branches, key) == BRANCH_RANGE;
}

/* --- taking in -------------------------------------------------------------------------------- */

static unsigned int detail_of(const struct branches *branches, __u32 kind)
{
	bool named = branches->asked.detail & (CODE_SYMBOL | CODE_LINE);

	return kind != BRANCH_RANGE ? branches->asked.detail : named ? CODE_PLACE | CODE_SYMBOL : CODE_PLACE;
}

static bool is_known(const struct branches *branches, __u64 number)
{
	return codes_at(branches->codes, number)->module;
}

static __u32 *stack_of(const struct branches *branches, const void *key)
{
	return (__u32 *)((char *)key + branches->stack->offset);
}

static void add_sums(struct branch_sums *sums, const struct branch_sums *more)
{
	sums->count += more->count;
	sums->period += more->period;
	sums->mispredicted += more->mispredicted;
	sums->mispredicted_period += more->mispredicted_period;
}

static void add_shed(struct shed_branches *to, __u64 nr, const struct branch_sums *sums)
{
	to->nr += nr;
	add_sums(&to->sum, sums);
}

static struct branch_sums sums_of_entry(const struct entry *entry, bool missed)
{
	__u64 count = count_of(entry), period = entry_weight(entry);

	return (struct branch_sums){.count = count,
				    .period = period,
				    .mispredicted = missed ? count : 0,
				    .mispredicted_period = missed ? period : 0};
}

/* The sums of a key; zero if it is new. */
static struct branch_sums *sums_of_key(struct branches *branches, const void *key)
{
	size_t known = branches->keys.nr;
	__u32 number = interned_number(&branches->keys, key);

	branches->sums = xroom(branches->sums, number, &branches->room, sizeof(*branches->sums));
	if (number == known)
		branches->sums[number] = (struct branch_sums){0};
	return &branches->sums[number];
}

static void take_place(struct branches *branches, const struct entry *entry)
{
	const struct layout *layout = branches->layout;
	__u64 count = count_of(entry);
	struct branch_sums sums;
	__u64 words[layout->key_size / sizeof(__u64)];
	__u64 *from = of_key(branches, words, "from"), *to = of_key(branches, words, "to");
	__u32 *kind = of_key(branches, words, "kind"), *pid = of_key(branches, words, "pid");
	const char *comm;
	unsigned int detail;
	bool known, missed;

	memcpy(words, entry->key, layout->key_size);
	comm = key_comm(layout, words);
	if (branches->stack)
		*stack_of(branches, words) =
			chains_number(branches->chains, *stack_of(branches, words), comm);
	detail = detail_of(branches, *kind);
	*from = codes_number(branches->codes, detail, *pid, comm, *from, count);
	*to = codes_number(branches->codes, detail, *pid, comm, *to, count);
	known = is_known(branches, *from) && is_known(branches, *to);
	branches->unresolved += known ? 0 : count;
	if (branches->asked.sources_only && *kind != BRANCH_RANGE)
		*to = NO_CODE;
	if (!member(layout->keys, layout->nr_keys, "pid")->shown)
		*pid = 0;
	missed = *kind == BRANCH_MISSED;
	if (missed)
		*kind = BRANCH_EDGE;
	sums = sums_of_entry(entry, missed);
	add_sums(sums_of_key(branches, words), &sums);
	branches->mispredicted += sums.mispredicted;
}

static void take_stack(struct branches *branches, const struct entry *entry)
{
	__u64 depth = *(__u64 *)of_key(branches, entry->key, "from");

	branches->depths[depth] += count_of(entry);
	branches->period += depth * entry_weight(entry);
	/* 0: it was shed, and its stack is in the reading's account. */
	if (branches->stack && *stack_of(branches, entry->key))
		chains_count(branches->chains,
			     chains_number(branches->chains, *stack_of(branches, entry->key),
					   key_comm(branches->layout, entry->key)),
			     count_of(entry));
	if (depth > branches->deepest)
		branches->deepest = depth;
}

static void take_broken(struct branches *branches, const struct entry *entry)
{
	branches->broken += count_of(entry);
}

static void (*const take[])(struct branches *branches, const struct entry *entry) = {
	[BRANCH_STACK] = take_stack, [BRANCH_EDGE] = take_place,    [BRANCH_MISSED] = take_place,
	[BRANCH_RANGE] = take_place, [BRANCH_BROKEN] = take_broken,
};

/* Sort key of a place, for entries that are otherwise equal. */
static __u64 rank(const struct branches *branches, __u64 number)
{
	const struct code *code = number == NO_CODE ? NULL : codes_at(branches->codes, number);

	return !code ? 0 : code->has_address ? code->address : code->offset + code->line;
}

static int by_number(__u64 x, __u64 y)
{
	return x < y ? -1 : x > y;
}

static int by_weight(const void *a, const void *b, void *of)
{
	const struct branches *branches = of;
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;
	const struct branch_sums *first = &branches->sums[x], *second = &branches->sums[y];
	const void *key = interned_at(&branches->keys, x), *other = interned_at(&branches->keys, y);

	if (branches->asked.by_mispredicted && first->mispredicted_period != second->mispredicted_period)
		return by_number(second->mispredicted_period, first->mispredicted_period);
	if (first->period != second->period)
		return by_number(second->period, first->period);
	if (first->count != second->count)
		return by_number(second->count, first->count);
	/* Keep the order the same in every run, as far as possible: numbers of codes are not. */
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "to" : "from";
		int order = by_number(rank(branches, *(__u64 *)of_key(branches, key, name)),
				      rank(branches, *(__u64 *)of_key(branches, other, name)));

		if (order)
			return order;
	}
	return memcmp(key, other, branches->layout->key_size);
}

struct branches *branches_new(const struct host *host, struct codes *codes,
			      const struct branches_asked *asked, const struct layout *layout)
{
	struct branches *branches = xcalloc(1, sizeof(*branches));

	branches->host = host;
	branches->codes = codes;
	branches->asked = *asked;
	branches->layout = layout;
	branches->deepest = asked->depth;
	branches->stack = layout_key_of_type(layout, "stack_id_t");
	branches->chains = chains_new(NULL, codes, asked->frames);
	interned_init(&branches->keys, layout->key_size);
	return branches;
}

void branches_release(struct branches *branches)
{
	interned_release(&branches->keys);
	chains_release(branches->chains);
	free(branches->sums);
	free(branches->order);
	free(branches);
}

void branches_from(struct branches *branches, const struct stacks *stacks)
{
	chains_of(branches->chains, stacks);
}

static void take_entry(struct branches *branches, const struct entry *entry)
{
	take[kind_of(branches, entry->key)](branches, entry);
}

/* Whether there is time for the name of one of the key's addresses. */
static bool try_place(struct branches *branches, const struct entry *entry, const char *name)
{
	const void *key = entry->key;
	__u32 ignored;

	return codes_try(branches->codes, detail_of(branches, kind_of(branches, key)),
			 *(__u32 *)of_key(branches, key, "pid"), key_comm(branches->layout, key),
			 *(__u64 *)of_key(branches, key, name), 0, &ignored);
}

bool branches_try(struct branches *branches, const struct entry *entry)
{
	__u32 kind = kind_of(branches, entry->key);

	if (branches->stack && !chains_try(branches->chains, *stack_of(branches, entry->key),
					   key_comm(branches->layout, entry->key)))
		return false;
	if (take[kind] == take_place &&
	    (!try_place(branches, entry, "from") || !try_place(branches, entry, "to")))
		return false;
	take_entry(branches, entry);
	return true;
}

static void sort_branches(struct branches *branches)
{
	free(branches->order);
	branches->order = xcalloc(branches->keys.nr + 1, sizeof(*branches->order));
	for (size_t i = 0; i < branches->keys.nr; i++)
		branches->order[i] = i;
	qsort_r(branches->order, branches->keys.nr, sizeof(*branches->order), by_weight, branches);
}

/* Takes in what a reading has of keys that were shed. */
static void take_shed(struct branches *branches, const struct remainder *apart)
{
	for (size_t i = 0; i < apart->sums.keys.nr; i++) {
		struct entry entry = {interned_at(&apart->sums.keys, i), sums_at(&apart->sums, i)};
		__u32 kind = kind_of(branches, entry.key);
		struct branch_sums sums = sums_of_entry(&entry, kind == BRANCH_MISSED);

		if (take[kind] != take_place) {
			take_entry(branches, &entry);
			continue;
		}
		branches->mispredicted += sums.mispredicted;
		add_shed(&branches->shed[kind == BRANCH_RANGE], apart->keys[i], &sums);
	}
}

void branches_add(struct branches *branches, const struct reading *reading)
{
	branches->lost = reading->further_lost;
	branches_from(branches, reading->stacks);
	for (size_t i = 0; i < reading->nr_entries; i++)
		take_entry(branches, &reading->entries[i]);
	if (reading->apart)
		take_shed(branches, reading->apart);
	chains_count_others(branches->chains, &reading->shed_stacks);
	sort_branches(branches);
}

/* --- keeping some ----------------------------------------------------------------------------- */

static void mark_used(const struct branches *branches, const void *key, bool *used)
{
	__u64 to = *(__u64 *)of_key(branches, key, "to");

	used[*(__u64 *)of_key(branches, key, "from")] = true;
	if (to != NO_CODE)
		used[to] = true;
}

void branches_choose(struct branches *branches, size_t most, bool *used)
{
	size_t nr = branches->keys.nr;

	sort_branches(branches);
	branches->nr_chosen = nr < most ? nr : most;
	for (size_t i = 0; i < branches->nr_chosen; i++)
		mark_used(branches, interned_at(&branches->keys, branches->order[i]), used);
	for (size_t i = branches->nr_chosen; i < nr; i++) {
		__u32 number = branches->order[i];

		add_shed(&branches->shed[is_range(branches, interned_at(&branches->keys, number))], 1,
			 &branches->sums[number]);
	}
}

void branches_keep(struct branches *branches, const __u32 *numbers)
{
	struct interned before = branches->keys;
	struct branch_sums *sums = branches->sums;
	__u64 key[before.size / sizeof(__u64)];
	__u64 *from = of_key(branches, key, "from"), *to = of_key(branches, key, "to");

	interned_init(&branches->keys, before.size);
	branches->sums = NULL;
	branches->room = 0;
	for (size_t i = 0; i < branches->nr_chosen; i++) {
		memcpy(key, interned_at(&before, branches->order[i]), before.size);
		*from = numbers[*from];
		*to = *to == NO_CODE ? NO_CODE : numbers[*to];
		*sums_of_key(branches, key) = sums[branches->order[i]];
	}
	interned_release(&before);
	free(sums);
}

size_t branches_count(const struct branches *branches)
{
	return branches->keys.nr;
}

/* --- giving out ------------------------------------------------------------------------------- */

static void append_place(const struct branches *branches, struct compact *text, const char *head,
			 __u64 number)
{
	append_code(text, head, codes_at(branches->codes, number));
}

/* Adds the keys that were asked for in addition to the places. */
static void add_identity(struct fields *fields, const struct branches *branches, const void *key)
{
	static const char *const names[] = {"pid", "comm", "cgroup"};
	const struct layout *layout = branches->layout;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct member *found = member(layout->keys, layout->nr_keys, names[i]);

		if (found->shown)
			add_key_member(fields, branches->host, found, key);
	}
}

static void add_sums_of(struct fields *fields, const struct branch_sums *sums, bool predicted)
{
	fields_number(fields, "count", sums->count);
	fields_number(fields, "period", sums->period);
	if (!predicted)
		return;
	fields_number(fields, "mispredicted", sums->mispredicted);
	fields_number(fields, "mispredicted_period", sums->mispredicted_period);
}

static void append_branch(struct branches *branches, struct compact *text, __u32 number)
{
	const void *key = interned_at(&branches->keys, number);
	bool edge = !is_range(branches, key);
	__u64 from = *(__u64 *)of_key(branches, key, "from"), to = *(__u64 *)of_key(branches, key, "to");
	struct fields kind, others;

	fields_begin(&kind);
	fields_begin(&others);
	fields_string(&kind, "kind", edge ? branches->asked.kind : "range");
	compact_add_fields(text, &kind);
	append_place(branches, text, ",\"from\":", from);
	if (to != NO_CODE)
		append_place(branches, text, ",\"to\":", to);
	if (branches->stack)
		chains_append(branches->chains, text, *stack_of(branches, key));
	add_identity(&others, branches, key);
	add_sums_of(&others, &branches->sums[number], edge);
	compact_add_fields(text, &others);
	fields_clear(&others);
}

/* Ranges have a rest of their own: they are not among the branches that edges add up to. */
static void put_rest(const struct branches *branches, json_t *record, size_t top)
{
	struct shed_branches rests[2] = {branches->shed[0], branches->shed[1]};

	for (size_t i = top; i < branches->keys.nr; i++) {
		__u32 number = branches->order[i];

		add_shed(&rests[is_range(branches, interned_at(&branches->keys, number))], 1,
			 &branches->sums[number]);
	}
	for (int range = 0; range < 2; range++) {
		struct fields fields;
		json_t *rest;

		fields_begin(&fields);
		if (!rests[range].nr)
			continue;
		rest = json_object();
		fields_string(&fields, "kind", range ? "range" : branches->asked.kind);
		fields_number(&fields, "entries", rests[range].nr);
		add_sums_of(&fields, &rests[range].sum, !range);
		fields_put(&fields, rest);
		json_object_set_new(record, range ? "rest_of_ranges" : "rest", rest);
	}
}

void branches_put(struct branches *branches, json_t *record, size_t top)
{
	json_t *depths = json_array();
	struct rows rows = {0};
	__u64 delivered = 0;

	for (size_t depth = 0; depth <= branches->deepest; depth++) {
		delivered += depth * branches->depths[depth];
		json_array_append_new(depths, json_integer(branches->depths[depth]));
	}
	json_object_set_new(record, "stacks", json_pack("{s:o}", "by_depth", depths));
	json_object_set_new(
		record, "branches",
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "delivered", (json_int_t)delivered, "period",
			  (json_int_t)branches->period, "mispredicted", (json_int_t)branches->mispredicted,
			  "unresolved", (json_int_t)branches->unresolved, "broken",
			  (json_int_t)branches->broken, "table_full", (json_int_t)branches->lost));
	for (size_t i = 0; i < top; i++) {
		append_branch(branches, rows_begin(&rows), branches->order[i]);
		rows_end(&rows);
	}
	if (branches->stack) {
		json_object_set_new(record, "call_stacks",
				    chains_account(branches->chains, branches->asked.by_tables));
		chains_put_frames(branches->chains, record);
	}
	put_rest(branches, record, top);
	rows_put(&rows, record, "entries");
}
