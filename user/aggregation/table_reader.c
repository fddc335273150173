// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/table_reader.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "aggregation/remainder.h"
#include "aggregation/sums.h"
#include "base/clock.h"
#include "base/memory.h"
#include "shared.h"

/* A program is inside a table for less than a microsecond, or a few for a deep stack. */
#define LOOKS_BEFORE_YIELD 1000
#define LONGEST_WAIT_NS	   1000000000ULL

struct table_reader {
	struct bpf_map *map;
	const struct layout *layout;
	const struct table_layout *table;
	const struct member *kind;  /* the key's of type entry_kind_t; NULL if it has none */
	const struct member *stack; /* the key's of type stack_id_t; likewise */
	struct stack_areas *areas;  /* NULL: no stacks */
	struct {
		bool (*wanted)(void *context, __u64 cgroup); /* NULL: all entries are */
		void *context;
		size_t at; /* offset of the cgroup in a key */
		bool shown;
	} filter; /* see table_reader_filter() */
	int nr_cpus;
	char *tables;	  /* mapped: nr_cpus tables behind each other */
	bool *behind;	  /* for each CPU: the generation that programs have left has not been read yet */
	struct sums sums; /* those of the last reading, until more are gathered */
	bool was_read;	  /* the sums are still those of the last reading */
	size_t most_keys; /* the most that may be gathered */
	struct reading counts;	/* so far; its entries are those of the last reading */
	size_t room;		/* the number of entries that there is room for */
	__u64 *shed;		/* the sum of the values of keys that were not kept */
	struct remainder apart; /* see struct reading */
};

struct table_reader *table_reader_prepare(struct bpf_object *object, int nr_cpus, const struct layout *layout,
					  const struct table_layout *table, struct stack_areas *areas,
					  unsigned int stack_frames)
{
	struct table_reader *reader = xcalloc(1, sizeof(*reader));

	reader->map = bpf_object__find_map_by_name(object, "tables");
	reader->layout = layout;
	reader->table = table;
	reader->kind = layout_key_of_type(layout, "entry_kind_t");
	reader->stack = layout_key_of_type(layout, "stack_id_t");
	reader->areas = areas;
	reader->nr_cpus = nr_cpus;
	reader->most_keys = SIZE_MAX;
	reader->behind = xcalloc(nr_cpus, sizeof(*reader->behind));
	reader->shed = xcalloc(1, layout->value_size);
	sums_init(&reader->sums, layout, areas ? stack_frames : 0);
	remainder_init(&reader->apart, layout);
	bpf_map__set_max_entries(reader->map, nr_cpus);
	return reader;
}

static size_t mapped_size(const struct table_reader *reader)
{
	return reader->table->size * reader->nr_cpus;
}

int table_reader_map(struct table_reader *reader)
{
	void *mapped = mmap(NULL, mapped_size(reader), PROT_READ | PROT_WRITE, MAP_SHARED,
			    bpf_map__fd(reader->map), 0);

	if (mapped == MAP_FAILED)
		return -errno;
	reader->tables = mapped;
	return 0;
}

void table_reader_close(struct table_reader *reader)
{
	if (!reader)
		return;
	if (reader->tables)
		munmap(reader->tables, mapped_size(reader));
	sums_release(&reader->sums);
	remainder_release(&reader->apart);
	free(reader->behind);
	free(reader->counts.entries);
	free(reader->shed);
	free(reader);
}

/* --- generations ------------------------------------------------------------------------------ */

static struct table_head *head_of(const struct table_reader *reader, int cpu)
{
	return (void *)(reader->tables + cpu * reader->table->size);
}

static struct generation_head *generation_of(const struct table_reader *reader, int cpu, unsigned int which)
{
	return (struct generation_head *)((char *)head_of(reader, cpu) + reader->table->generations) + which;
}

/* The generation that the CPU's programs are to use now. */
static unsigned int current_generation(const struct table_reader *reader, int cpu)
{
	return head_of(reader, cpu)->generation & 1;
}

/*
 * Makes the programs of all CPUs use their tables' other generation, which is empty. Whether a program is
 * inside is checked only when all can see this (see table_enter()): this store and the first load of `turns`
 * are sequentially consistent. A fence would do the same, but TSan does not support fences.
 */
static void switch_generations(struct table_reader *reader)
{
	for (int cpu = 0; cpu < reader->nr_cpus; cpu++) {
		if (!reader->behind[cpu])
			__atomic_fetch_add(&head_of(reader, cpu)->generation, 1, __ATOMIC_SEQ_CST);
		reader->behind[cpu] = true;
	}
}

/* Waits until no program uses the generation that was switched from. Returns false if one stays inside for
 * too long. */
static bool wait_until_left(const struct table_reader *reader, int cpu)
{
	const __u64 *turns = &head_of(reader, cpu)->turns;
	__u64 inside = __atomic_load_n(turns, __ATOMIC_SEQ_CST), deadline = 0;

	if (!(inside & 1))
		return true;
	for (unsigned int looks = 1; __atomic_load_n(turns, __ATOMIC_ACQUIRE) == inside; looks++) {
		if (looks % LOOKS_BEFORE_YIELD)
			continue;
		if (!deadline)
			deadline = clock_ns(CLOCK_MONOTONIC) + LONGEST_WAIT_NS;
		if (clock_ns(CLOCK_MONOTONIC) > deadline)
			return false;
		sched_yield();
	}
	return true;
}

/* --- periods, time ---------------------------------------------------------------------------- */

void table_reader_weigh(struct table_reader *reader, __u64 opened, __u64 held)
{
	for (int cpu = 0; cpu < reader->nr_cpus; cpu++) {
		struct table_head *head = head_of(reader, cpu);

		__atomic_store_n(&head->period_held, held, __ATOMIC_RELAXED);
		__atomic_store_n(&head->period_opened, opened, __ATOMIC_RELEASE);
	}
}

void table_reader_carry(struct table_reader *reader, int cpu, __u64 count, __u64 most)
{
	struct table_head *head = head_of(reader, cpu);
	__u64 rest = count > head->weighed ? count - head->weighed : 0;

	__atomic_store_n(&head->carried, rest < most ? rest : most, __ATOMIC_RELEASE);
}

struct table_runs table_reader_runs(const struct table_reader *reader)
{
	struct table_runs sum = {0};

	for (int cpu = 0; cpu < reader->nr_cpus; cpu++) {
		const volatile struct table_head *head = head_of(reader, cpu);

		sum.runs += head->turns / 2;
		sum.timed_runs += head->timed_runs;
		sum.timed_ns += head->timed_ns;
	}
	return sum;
}

/* --- taking ----------------------------------------------------------------------------------- */

/* Whether an entry stands for a sample: see entry_kind_t in bpf/shared.h. Without that member, each entry
 * does. */
static bool stands_for_sample(const struct table_reader *reader, const char *key)
{
	const struct member *kind = reader->kind;

	return !kind || *(const __u32 *)(key + kind->offset) == 0;
}

void table_reader_filter(struct table_reader *reader, bool (*wanted)(void *context, __u64 cgroup),
			 void *context, bool shown)
{
	reader->filter.wanted = wanted;
	reader->filter.context = context;
	reader->filter.at = layout_key_of_type(reader->layout, "cgroup_id_t")->offset;
	reader->filter.shown = shown;
}

static bool is_wanted(const struct table_reader *reader, const char *key)
{
	return !reader->filter.wanted ||
	       reader->filter.wanted(reader->filter.context, *(const __u64 *)(key + reader->filter.at));
}

/* The member of a key that has its stack. */
static __u32 *stack_in(const struct table_reader *reader, void *key)
{
	return (__u32 *)((char *)key + reader->stack->offset);
}

/* Adds values to the sums. The same stack has a different id in each area, so the id is replaced by the
 * stack's number. */
static void add_values(struct table_reader *reader, int cpu, unsigned int which, const char *key,
		       const __u64 *values)
{
	struct sums *sums = &reader->sums;
	size_t size = reader->layout->key_size;
	bool hides = reader->filter.wanted && !reader->filter.shown;
	__u64 words[size / sizeof(__u64)];
	__u32 *stack;

	if (!hides && !reader->areas) {
		sums_add(sums, key, values);
		return;
	}
	memcpy(words, key, size);
	if (hides)
		words[reader->filter.at / sizeof(__u64)] = 0;
	if (!reader->areas) {
		sums_add(sums, words, values);
		return;
	}
	stack = stack_in(reader, words);
	if (*stack == STACK_FULL)
		reader->counts.stacks_full += ((const struct value_head *)values)->samples;
	if (*stack >= STACK_FIRST)
		*stack = stacks_number(sums->stacks, stack_areas_at(reader->areas, cpu, which, *stack));
	sums_add(sums, words, values);
}

static void add_shed(void *context, const void *key, const __u64 *values)
{
	struct table_reader *reader = context;
	struct reading *counts = &reader->counts;

	sums_merge(&reader->sums, reader->shed, values);
	counts->nr_shed++;
	if (reader->sums.stacks && stands_for_sample(reader, key))
		stack_account_add(&counts->shed_stacks, reader->sums.stacks,
				  *(const __u32 *)((const char *)key + reader->stack->offset),
				  ((const struct value_head *)values)->samples);
	remainder_add(&reader->apart, key, values);
}

/* Keeps the more important half of the keys if there are too many. The sum of a key that comes again later is
 * too small by what was shed of it, which is less than any of the keys kept had. */
static void shed(struct table_reader *reader)
{
	if (reader->sums.keys.nr > reader->most_keys)
		sums_shed(&reader->sums, reader->most_keys / 2, add_shed, reader);
}

static void count_samples(struct reading *counts, const struct value_head *value, bool wanted)
{
	counts->period += value->period;
	if (!wanted) {
		counts->unwanted += value->samples;
		return;
	}
	counts->aggregated += value->samples;
	counts->aggregated_period += value->period;
}

static void take_slot(struct table_reader *reader, int cpu, unsigned int which, const char *key,
		      const struct value_head *value)
{
	bool wanted = is_wanted(reader, key);

	if (stands_for_sample(reader, key))
		count_samples(&reader->counts, value, wanted);
	else if (wanted)
		reader->counts.further += value->samples;
	if (!wanted)
		return;
	add_values(reader, cpu, which, key, (const __u64 *)value);
	shed(reader);
}

/* Takes what is in the slots, and frees them. */
static void take_slots(struct table_reader *reader, int cpu, unsigned int which)
{
	const struct table_layout *layout = reader->table;
	char *table = (char *)head_of(reader, cpu);
	const __u32 *order = (const __u32 *)(table + layout->order) + which * layout->nr_slots;
	size_t used = generation_of(reader, cpu, which)->used;

	for (size_t i = 0; i < used; i++) {
		char *slot = table + layout->slots + order[i] * layout->slot_size;
		struct value_head *value = (void *)(slot + layout->value);

		take_slot(reader, cpu, which, slot + layout->key, value);
		memset(value, 0, reader->layout->value_size);
	}
}

static void take_generation(struct table_reader *reader, int cpu, unsigned int which)
{
	struct generation_head *head = generation_of(reader, cpu, which);
	struct reading *counts = &reader->counts;

	take_slots(reader, cpu, which);
	counts->table_full += head->table_full;
	counts->stack_failed += head->stack_failed;
	counts->further_lost += head->further_lost;
	counts->throttled += head->throttled;
	counts->filtered += head->filtered;
	counts->unwanted += head->filtered;
	counts->period += head->period_of_full + head->period_of_filtered;
	counts->counts_dropped |= head_of(reader, cpu)->counts_dropped;
	*head = (struct generation_head){0};
	if (reader->areas)
		stack_areas_clear(reader->areas, cpu, which);
}

/* Forgets the last reading, so that more can be gathered. */
static void forget_reading(struct table_reader *reader)
{
	struct reading *counts = &reader->counts;

	if (!reader->was_read)
		return;
	sums_clear(&reader->sums);
	memset(reader->shed, 0, reader->layout->value_size);
	counts->nr_shed = 0;
	counts->shed_stacks = (struct stack_account){0};
	remainder_clear(&reader->apart);
	counts->entries = xtrim(counts->entries, counts->nr_entries, &reader->room, sizeof(*counts->entries));
	reader->was_read = false;
}

void table_reader_drain(struct table_reader *reader, size_t most_keys)
{
	reader->most_keys = most_keys;
	forget_reading(reader);
	switch_generations(reader);
	for (int cpu = 0; cpu < reader->nr_cpus; cpu++) {
		if (!wait_until_left(reader, cpu))
			continue;
		take_generation(reader, cpu, !current_generation(reader, cpu));
		reader->behind[cpu] = false;
	}
}

size_t table_reader_kept(const struct table_reader *reader)
{
	return reader->sums.keys.nr;
}

const struct stacks *table_reader_stacks(const struct table_reader *reader)
{
	return reader->sums.stacks;
}

void table_reader_take(struct table_reader *reader, bool (*take)(void *context, const struct entry *entry),
		       void *context)
{
	const struct sums *sums = &reader->sums;
	bool *kept = xcalloc(sums->keys.nr + 1, sizeof(*kept));

	for (size_t number = 0; number < sums->keys.nr; number++) {
		struct entry entry = {interned_at(&sums->keys, number), sums_at(sums, number)};

		kept[number] = !take(context, &entry);
		if (!kept[number] && reader->apart.source)
			remainder_add(&reader->apart, entry.key, entry.values);
	}
	sums_keep(&reader->sums, kept);
	free(kept);
}

void table_reader_so_far(struct table_reader *reader, __u64 *samples, __u64 *lost)
{
	table_reader_drain(reader, reader->most_keys);
	*samples += reader->counts.aggregated;
	*lost += reader->counts.table_full + reader->counts.stack_failed;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void list_entries(struct table_reader *reader)
{
	const struct sums *sums = &reader->sums;
	size_t nr = sums->keys.nr;

	if (!reader->counts.entries || nr > reader->room) {
		free(reader->counts.entries);
		reader->counts.entries = xmalloc((nr + 1) * sizeof(struct entry));
		reader->room = nr;
	}
	for (size_t number = 0; number < nr; number++)
		reader->counts.entries[number] =
			(struct entry){interned_at(&sums->keys, number), sums_at(sums, number)};
	reader->counts.nr_entries = nr;
}

void table_reader_read(struct table_reader *reader, size_t most_keys, struct reading *reading)
{
	struct reading *counts = &reader->counts;

	table_reader_drain(reader, most_keys);
	list_entries(reader);
	reader->was_read = true;
	counts->runs = counts->aggregated + counts->unwanted + counts->table_full + counts->stack_failed;
	counts->stacks = reader->sums.stacks;
	counts->shed = reader->shed;
	counts->apart = &reader->apart;
	*reading = *counts;
	counts->further = counts->further_lost = counts->stacks_full = 0;
}
