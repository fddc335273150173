// SPDX-License-Identifier: GPL-2.0-only
#include "collection/table_reader.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "interned.h"
#include "shared.h"

struct table_reader {
	struct bpf_object *object;
	struct bpf_map *map;
	const struct layout *layout;
	const struct table_layout *table;
	const struct member *kind;  /* the key's of type entry_kind_t; NULL if it has none */
	const struct member *stack; /* the key's of type stack_id_t; likewise */
	struct stacks *stacks;      /* NULL: stacks are not told apart */
	int nr_cpus;
	char *tables; /* mapped: nr_cpus tables behind each other */
	size_t mapped;

	struct interned keys;     /* every key seen so far, by number */
	__u64 *now, *before;      /* words() a key: the sums at this and the last reading */
	__u64 *difference;
	bool *maximum;            /* of each word: the largest counts, not the sum */
	char *variables;          /* mapped: the object's, where `interval` is among them */
	volatile __u32 *interval; /* NULL if it has none */
	size_t room;              /* keys that the three have room for */
	__u32 **numbers;          /* a CPU: the key number of each slot, in the order of taking */
	size_t *nr_numbers;
	struct entry *entries;
	__u64 further_lost; /* up to the last reading */
};

static void mark_maxima(struct table_reader *reader)
{
	const struct layout *layout = reader->layout;

	reader->maximum = calloc(layout->value_size / sizeof(__u64), sizeof(bool));
	for (size_t i = 0; i < layout->nr_values; i++)
		for (size_t word = 0; word < layout->values[i].size / sizeof(__u64); word++)
			reader->maximum[layout->values[i].offset / sizeof(__u64) + word] =
				layout->values[i].maximum;
}

/* Where the variable is by which an object knows the interval; -1: it has none. */
static long interval_offset(const struct table_reader *reader)
{
	const struct btf *btf = bpf_object__btf(reader->object);
	__s32 id = btf__find_by_name_kind(btf, "interval", BTF_KIND_VAR);
	__s32 section = btf__find_by_name_kind(btf, ".bss", BTF_KIND_DATASEC);
	const struct btf_type *type = id < 0 || section < 0 ? NULL : btf__type_by_id(btf, section);

	for (int i = 0; type && i < btf_vlen(type); i++)
		if (btf_var_secinfos(type)[i].type == (__u32)id)
			return btf_var_secinfos(type)[i].offset;
	return -1;
}

static int map_interval(struct table_reader *reader)
{
	struct bpf_map *variables = bpf_object__find_map_by_name(reader->object, ".bss");
	long offset = interval_offset(reader);

	if (offset < 0)
		return 0;
	reader->variables = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED,
				 bpf_map__fd(variables), 0);
	if (reader->variables == MAP_FAILED) {
		reader->variables = NULL;
		return -errno;
	}
	reader->interval = (volatile __u32 *)(reader->variables + offset);
	return 0;
}

struct table_reader *table_reader_prepare(struct bpf_object *object, int nr_cpus, const struct layout *layout,
			      const struct table_layout *table, struct stacks *stacks)
{
	struct table_reader *reader = calloc(1, sizeof(*reader));

	reader->object = object;
	reader->map = bpf_object__find_map_by_name(object, "tables");
	reader->layout = layout;
	reader->table = table;
	reader->kind = layout_key_of_type(layout, "entry_kind_t");
	reader->stack = layout_key_of_type(layout, "stack_id_t");
	reader->stacks = stacks;
	reader->nr_cpus = nr_cpus;
	reader->numbers = calloc(nr_cpus, sizeof(*reader->numbers));
	reader->nr_numbers = calloc(nr_cpus, sizeof(*reader->nr_numbers));
	interned_init(&reader->keys, layout->key_size);
	mark_maxima(reader);
	bpf_map__set_max_entries(reader->map, nr_cpus);
	return reader;
}

int table_reader_map(struct table_reader *reader)
{
	reader->mapped = reader->table->size * reader->nr_cpus;
	reader->tables = mmap(NULL, reader->mapped, PROT_READ, MAP_SHARED, bpf_map__fd(reader->map), 0);
	if (reader->tables == MAP_FAILED) {
		reader->tables = NULL;
		return -errno;
	}
	return map_interval(reader);
}

void table_reader_close(struct table_reader *reader)
{
	if (!reader)
		return;
	if (reader->tables)
		munmap(reader->tables, reader->mapped);
	if (reader->variables)
		munmap(reader->variables, sysconf(_SC_PAGESIZE));
	for (int cpu = 0; cpu < reader->nr_cpus; cpu++)
		free(reader->numbers[cpu]);
	interned_release(&reader->keys);
	free(reader->numbers);
	free(reader->nr_numbers);
	free(reader->now);
	free(reader->before);
	free(reader->difference);
	free(reader->entries);
	free(reader->maximum);
	free(reader);
}

/* --- reading ---------------------------------------------------------------------------------- */

static size_t words(const struct table_reader *reader)
{
	return reader->layout->value_size / sizeof(__u64);
}

/* Makes room for the values of all keys. */
static void make_room(struct table_reader *reader)
{
	size_t wanted = reader->room ? reader->room : 64, before = reader->room;
	size_t bytes = words(reader) * sizeof(__u64);

	while (wanted < reader->keys.nr)
		wanted *= 2;
	if (wanted == before)
		return;
	reader->now = realloc(reader->now, wanted * bytes);
	reader->before = realloc(reader->before, wanted * bytes);
	reader->difference = realloc(reader->difference, wanted * bytes);
	reader->entries = realloc(reader->entries, wanted * sizeof(struct entry));
	memset((char *)reader->before + before * bytes, 0, (wanted - before) * bytes);
	reader->room = wanted;
}

static const char *slot_at(const struct table_reader *reader, const char *table, size_t nth)
{
	const __u32 *order = (const void *)(table + reader->table->order);

	return table + reader->table->slots + order[nth] * reader->table->slot_size;
}

/* The number of a CPU's key. What its stack is called differs from CPU to CPU. */
static __u32 number_key(struct table_reader *reader, int cpu, const char *key)
{
	size_t size = reader->layout->key_size;
	__u64 words[size / sizeof(__u64)];
	__u32 *stack;

	if (!reader->stacks)
		return interned_number(&reader->keys, key);
	memcpy(words, key, size);
	stack = (__u32 *)((char *)words + reader->stack->offset);
	*stack = stacks_number(reader->stacks, cpu, *stack);
	return interned_number(&reader->keys, words);
}

/* Gives a number to the key of each slot that was taken since the last reading. Slots are never
 * given back, so that is done once for each. */
static void number_new_slots(struct table_reader *reader, int cpu, size_t used)
{
	const char *table = reader->tables + cpu * reader->table->size;
	size_t from = reader->nr_numbers[cpu];

	if (used == from)
		return;
	reader->numbers[cpu] = realloc(reader->numbers[cpu], used * sizeof(__u32));
	for (size_t nth = from; nth < used; nth++)
		reader->numbers[cpu][nth] =
			number_key(reader, cpu, slot_at(reader, table, nth) +
							     reader->table->key);
	reader->nr_numbers[cpu] = used;
}

/* See entry_kind_t in bpf/shared.h: an aggregation without it has one entry a sample. */
static bool stands_for_sample(const struct table_reader *reader, const char *key)
{
	const struct member *kind = reader->kind;

	return !kind || *(const __u32 *)(key + kind->offset) == 0;
}

static void add_slots(struct table_reader *reader, int cpu, struct reading *reading)
{
	const char *table = reader->tables + cpu * reader->table->size;
	size_t n = words(reader);

	for (size_t nth = 0; nth < reader->nr_numbers[cpu]; nth++) {
		const volatile __u64 *value =
			(const void *)(slot_at(reader, table, nth) + reader->table->value);
		__u64 *sum = reader->now + reader->numbers[cpu][nth] * n;
		/* Each is read once: the program goes on, and what is summed up here is to be the sum
		 * of what the entries say. */
		struct value_head head = {value[0], value[1]};

		if (stands_for_sample(reader, (const char *)value - reader->table->value +
							   reader->table->key)) {
			reading->aggregated += head.samples;
			reading->period += head.period;
		}
		sum[0] += head.samples;
		sum[1] += head.period;
		for (size_t i = sizeof(head) / sizeof(__u64); i < n; i++) {
			__u64 word = value[i];

			if (!reader->maximum[i])
				sum[i] += word;
			else if (word > sum[i])
				sum[i] = word;
		}
	}
}

/* The maxima of an interval; of what has come since it ended, where there is nothing else. */
static void take_maxima(const struct table_reader *reader, __u32 interval, const __u64 *now,
			__u64 *values)
{
	const struct layout *layout = reader->layout;

	for (size_t i = 0; i < layout->nr_values; i++) {
		size_t first = layout->values[i].offset / sizeof(__u64);
		__u64 word;

		if (!layout->values[i].maximum)
			continue;
		word = now[first + (interval & 1)];
		if (MAXIMUM_INTERVAL(word) != interval)
			word = now[first + !(interval & 1)];
		values[first] = MAXIMUM_INTERVAL(word) - interval <= 1 ? MAXIMUM_VALUE(word) : 0;
		values[first + 1] = 0;
	}
}

/* Begins the next interval; returns the number of the one that ends. */
static __u32 next_interval(struct table_reader *reader)
{
	return reader->interval ? (*reader->interval)++ : 0;
}

static void collect_changes(struct table_reader *reader, __u32 interval, struct reading *reading)
{
	size_t n = words(reader);

	for (size_t number = 0; number < reader->keys.nr; number++) {
		__u64 *now = reader->now + number * n, *before = reader->before + number * n;
		__u64 *difference = reader->difference + number * n;

		if (!memcmp(now, before, n * sizeof(__u64)))
			continue;
		for (size_t i = 0; i < n; i++)
			difference[i] = now[i] - before[i];
		take_maxima(reader, interval, now, difference);
		reader->entries[reading->nr_entries++] =
			(struct entry){interned_at(&reader->keys, number), difference};
	}
	memcpy(reader->before, reader->now, reader->keys.nr * n * sizeof(__u64));
}

void table_reader_read(struct table_reader *reader, struct reading *reading)
{
	__u32 interval = next_interval(reader);

	*reading = (struct reading){0};
	for (int cpu = 0; cpu < reader->nr_cpus; cpu++) {
		const struct table_head *head =
			(const void *)(reader->tables + cpu * reader->table->size);

		/* Pairs with the program's order of stores: a slot is whole before it is counted. */
		number_new_slots(reader, cpu, __atomic_load_n(&head->used, __ATOMIC_ACQUIRE));
	}
	make_room(reader);
	memset(reader->now, 0, reader->keys.nr * reader->layout->value_size);
	for (int cpu = 0; cpu < reader->nr_cpus; cpu++) {
		const volatile struct table_head *head =
			(const void *)(reader->tables + cpu * reader->table->size);

		add_slots(reader, cpu, reading);
		reading->table_full += head->table_full;
		reading->throttled += head->throttled;
		reading->stack_failed += head->stack_failed;
		reading->further_lost += head->further_lost;
		reading->period += head->period_of_full;
	}
	reading->further_lost -= reader->further_lost;
	reader->further_lost += reading->further_lost;
	reading->runs = reading->aggregated + reading->table_full + reading->stack_failed;
	reading->entries = reader->entries;
	reading->stacks = reader->stacks;
	collect_changes(reader, interval, reading);
}
