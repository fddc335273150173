// SPDX-License-Identifier: GPL-2.0-only
#include "collection/aggregation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "collection/keys.h"
#include "collection/rings.h"
#include "collection/stacks.h"
#include "embedded.h"
#include "plan/denial.h"
#include "shared.h"

/* How a table of one CPU is laid out: struct table in bpf/table.bpf.h. */
struct table_layout {
	size_t size;
	size_t order, slots; /* offsets in the table */
	size_t slot_size, key, value;
};

struct aggregation {
	struct bpf_object *object;
	struct layout layout;
	struct table_layout table;
	const struct member *kind; /* the key's of type entry_kind_t; NULL if it has none */
	const struct member *stack; /* the key's of type stack_id_t; likewise */
	unsigned int stack_frames;  /* of a stack at most */
	struct stacks *stacks;      /* NULL: stacks are not told apart */
	int nr_cpus;
	char *tables; /* mapped: nr_cpus tables behind each other */
	size_t mapped;
	int *links; /* descriptors */
	size_t nr_links;

	bool stream;
	struct rings *rings; /* NULL: there is no stream */

	struct keys keys;        /* every key seen so far, by number */
	__u64 *now, *before;     /* nr_values words a key: the sums at this and the last reading */
	__u64 *difference;
	bool *maximum;           /* of each word: the largest counts, not the sum */
	char *variables;          /* mapped: the object's, where `interval` is among them */
	volatile __u32 *interval; /* NULL if it has none */
	size_t room;             /* keys that the three have room for */
	__u32 **numbers;         /* a CPU: the key number of each slot, in the order of taking */
	size_t *nr_numbers;
	struct entry *entries;
	__u64 further_lost; /* up to the last reading */
};

/* --- what the kernel and libbpf said last ----------------------------------------------------- */

static char last_words[512];

static int remember(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN)
		vsnprintf(last_words, sizeof(last_words), format, args);
	last_words[strcspn(last_words, "\n")] = '\0';
	return 0;
}

/* --- layout from BTF -------------------------------------------------------------------------- */

static const struct btf_type *resolved(const struct btf *btf, __u32 id)
{
	return btf__type_by_id(btf, btf__resolve_type(btf, id));
}

static const struct btf_member *member_of(const struct btf *btf, const struct btf_type *type,
					  const char *name)
{
	const struct btf_member *members = btf_members(type);

	for (int i = 0; i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, members[i].name_off), name))
			return &members[i];
	return NULL;
}

static size_t read_members(const struct btf *btf, const struct btf_type *type,
			   struct member **result)
{
	struct member *list = calloc(btf_vlen(type), sizeof(*list));
	size_t count = 0;

	for (int i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const struct btf_type *outer = btf__type_by_id(btf, member->type);
		const char *name = btf_is_typedef(outer) ? btf__name_by_offset(btf, outer->name_off) : "";

		if (!strcmp(name, "padding_t"))
			continue;
		list[count++] = (struct member){
			.name = btf__name_by_offset(btf, member->name_off),
			.type = name,
			.offset = member->offset / 8,
			.size = btf__resolve_size(btf, member->type),
			.shown = true,
			.maximum = !strcmp(name, "maximum_t"),
		};
	}
	*result = list;
	return count;
}

static void mark_maxima(struct aggregation *aggregation)
{
	const struct layout *layout = &aggregation->layout;

	aggregation->maximum = calloc(layout->value_size / sizeof(__u64), sizeof(bool));
	for (size_t i = 0; i < layout->nr_values; i++)
		for (size_t word = 0; word < layout->values[i].size / sizeof(__u64); word++)
			aggregation->maximum[layout->values[i].offset / sizeof(__u64) + word] =
				layout->values[i].maximum;
}

/* Reads struct table, struct slot, struct key and struct value. */
static int read_layout(struct aggregation *aggregation)
{
	const struct btf *btf = bpf_object__btf(aggregation->object);
	struct table_layout *table = &aggregation->table;
	struct layout *layout = &aggregation->layout;
	const struct btf_type *outer, *slot, *key, *value;
	const struct btf_member *order, *slots;
	__s32 id = btf__find_by_name_kind(btf, "table", BTF_KIND_STRUCT);

	if (id < 0)
		return -EINVAL;
	outer = btf__type_by_id(btf, id);
	order = member_of(btf, outer, "order");
	slots = member_of(btf, outer, "slots");
	slot = resolved(btf, btf_array(resolved(btf, slots->type))->type);
	key = resolved(btf, member_of(btf, slot, "key")->type);
	value = resolved(btf, member_of(btf, slot, "value")->type);
	*table = (struct table_layout){
		.size = outer->size,
		.order = order->offset / 8,
		.slots = slots->offset / 8,
		.slot_size = slot->size,
		.key = member_of(btf, slot, "key")->offset / 8,
		.value = member_of(btf, slot, "value")->offset / 8,
	};
	layout->key_size = key->size;
	layout->value_size = value->size;
	layout->nr_keys = read_members(btf, key, &layout->keys);
	layout->nr_values = read_members(btf, value, &layout->values);
	mark_maxima(aggregation);
	for (size_t i = 0; i < layout->nr_keys; i++) {
		if (!strcmp(layout->keys[i].type, "entry_kind_t"))
			aggregation->kind = &layout->keys[i];
		if (!strcmp(layout->keys[i].type, "stack_id_t"))
			aggregation->stack = &layout->keys[i];
	}
	return 0;
}

/* --- keys ------------------------------------------------------------------------------------- */

/* The program's constants of this prefix are what it can be asked to tell apart. */
#define BY "by_"

struct choices {
	const struct btf *btf;
	const struct btf_type *section;
};

/* The name behind the prefix of the section's variable i; NULL for other variables. */
static const char *choice(const struct choices *choices, int i)
{
	const struct btf_var_secinfo *place = &btf_var_secinfos(choices->section)[i];
	const struct btf_type *variable = btf__type_by_id(choices->btf, place->type);
	const char *name = btf__name_by_offset(choices->btf, variable->name_off);

	return strncmp(name, BY, strlen(BY)) ? NULL : name + strlen(BY);
}

static const struct btf_var_secinfo *find_choice(const struct choices *choices, const char *name,
						 size_t length)
{
	for (int i = 0; i < btf_vlen(choices->section); i++) {
		const char *found = choice(choices, i);

		if (found && strlen(found) == length && !strncmp(found, name, length))
			return &btf_var_secinfos(choices->section)[i];
	}
	return NULL;
}

static int refuse_key(const struct choices *choices, const char *by, const char *name, int length,
		      struct refusal *refusal)
{
	char known[200] = "";
	size_t used = 0;

	for (int i = 0; i < btf_vlen(choices->section); i++)
		if (choice(choices, i))
			used += snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
					 choice(choices, i));
	refuse(refusal, STATUS_USAGE, "option --by '%s'", by);
	because(refusal, "there is no key '%.*s'", length, name);
	return instead(refusal, "keys: %s", known);
}

/* Sets a constant of the program, before it is loaded; returns false if there is none of this name. */
static bool set_constant(struct aggregation *aggregation, const char *name, __u64 value)
{
	const struct btf *btf = bpf_object__btf(aggregation->object);
	struct bpf_map *rodata = bpf_object__find_map_by_name(aggregation->object, ".rodata");
	const struct btf_type *section =
		btf__type_by_id(btf, btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC));

	for (int i = 0; i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *place = &btf_var_secinfos(section)[i];
		const struct btf_type *variable = btf__type_by_id(btf, place->type);
		size_t size;
		char *constants;

		if (strcmp(btf__name_by_offset(btf, variable->name_off), name))
			continue;
		constants = (char *)bpf_map__initial_value(rodata, &size);
		constants = memcpy(malloc(size), constants, size);
		memcpy(constants + place->offset, &value, place->size); /* little endian */
		bpf_map__set_initial_value(rodata, constants, size);
		free(constants);
		return true;
	}
	return false;
}

static const struct member *key_member(const struct layout *layout, const char *name, size_t length)
{
	for (size_t i = 0; i < layout->nr_keys; i++)
		if (strlen(layout->keys[i].name) == length &&
		    !strncmp(layout->keys[i].name, name, length))
			return &layout->keys[i];
	return NULL;
}

/* A key that there is no choice about may be named as well, where all entries have the same keys. */
static bool always_told(const struct aggregation *aggregation, const struct choices *choices,
			const char *name, size_t length)
{
	return !aggregation->kind && !find_choice(choices, name, length) &&
	       key_member(&aggregation->layout, name, length);
}

static int set_choices(const struct aggregation *aggregation, const struct choices *choices,
		       const char *by, char *constants, struct refusal *refusal)
{
	for (const char *at = by;; at++) {
		size_t length = strcspn(at, ",");
		const struct btf_var_secinfo *place = find_choice(choices, at, length);

		if (!place && !always_told(aggregation, choices, at, length))
			return refuse_key(choices, by, at, length, refusal);
		if (place)
			constants[place->offset] = true;
		at += length;
		if (!*at)
			return 0;
	}
}

/* Members of the key that the program does not tell apart are not shown. What it was asked for is
 * noted in the order of the key, what stands for no member of it behind. */
static void note_choices(struct aggregation *aggregation, const struct choices *choices,
			 const char *constants)
{
	struct layout *layout = &aggregation->layout;

	layout->by = calloc(btf_vlen(choices->section) + layout->nr_keys, sizeof(*layout->by));
	for (size_t i = 0; i < layout->nr_keys; i++) {
		struct member *member = &layout->keys[i];
		const struct btf_var_secinfo *place =
			find_choice(choices, member->name, strlen(member->name));

		member->optional = place;
		member->shown = !place || constants[place->offset];
		if (member->shown && (place || !aggregation->kind))
			layout->by[layout->nr_by++] = member->name;
	}
	for (int i = 0; i < btf_vlen(choices->section); i++)
		if (choice(choices, i) && constants[btf_var_secinfos(choices->section)[i].offset] &&
		    !key_member(layout, choice(choices, i), strlen(choice(choices, i))))
			layout->by[layout->nr_by++] = choice(choices, i);
}

static int choose_keys(struct aggregation *aggregation, const char *by, struct refusal *refusal)
{
	const struct btf *btf = bpf_object__btf(aggregation->object);
	struct bpf_map *rodata = bpf_object__find_map_by_name(aggregation->object, ".rodata");
	struct choices choices = {
		.btf = btf,
		.section = btf__type_by_id(btf, btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC)),
	};
	size_t size;
	const void *initial = bpf_map__initial_value(rodata, &size);
	char *constants = memcpy(malloc(size), initial, size);
	int err = set_choices(aggregation, &choices, by, constants, refusal);

	if (!err) {
		note_choices(aggregation, &choices, constants);
		bpf_map__set_initial_value(rodata, constants, size);
	}
	free(constants);
	return err;
}

void aggregation_conceal(struct aggregation *aggregation, const char *name)
{
	struct layout *layout = &aggregation->layout;
	size_t kept = 0;

	for (size_t i = 0; i < layout->nr_keys; i++)
		if (!strcmp(layout->keys[i].name, name))
			layout->keys[i].shown = false;
	for (size_t i = 0; i < layout->nr_by; i++)
		if (strcmp(layout->by[i], name))
			layout->by[kept++] = layout->by[i];
	layout->nr_by = kept;
}

/* --- opening ---------------------------------------------------------------------------------- */

int aggregation_open(struct aggregation **result, const char *name, const char *by,
		     struct refusal *refusal)
{
	struct aggregation *aggregation = calloc(1, sizeof(*aggregation));
	struct embedded file;
	char file_name[64];

	libbpf_set_print(remember);
	last_words[0] = '\0';
	snprintf(file_name, sizeof(file_name), "%s.bpf.o", name);
	file = embedded_find(file_name);
	aggregation->object = bpf_object__open_mem(file.data, file.size,
						   &(struct bpf_object_open_opts){
							   .sz = sizeof(struct bpf_object_open_opts),
							   .object_name = name,
						   });
	if (!aggregation->object || read_layout(aggregation)) {
		refuse(refusal, STATUS_REFUSED, "the aggregation '%s'", name);
		because(refusal, "its BPF object can't be read: %s", last_words);
		aggregation_close(aggregation);
		return -1;
	}
	if (choose_keys(aggregation, by, refusal)) {
		aggregation_close(aggregation);
		return -1;
	}
	keys_init(&aggregation->keys, aggregation->layout.key_size);
	*result = aggregation;
	return 0;
}

/* --- what else is asked for -------------------------------------------------------------------- */

void aggregation_stream(struct aggregation *aggregation)
{
	aggregation->stream = true;
	aggregation->layout.nr_by = 0;
	for (size_t i = 0; i < aggregation->layout.nr_keys; i++) {
		struct member *member = &aggregation->layout.keys[i];

		member->streamed = member->shown;
		member->shown = !member->optional;
		if (member->shown)
			aggregation->layout.by[aggregation->layout.nr_by++] = member->name;
	}
	set_constant(aggregation, "stream", true);
}

void aggregation_stacks(struct aggregation *aggregation, bool kernel, bool user, unsigned int frames)
{
	aggregation->stack_frames = frames;
	set_constant(aggregation, "kernel_stacks", kernel);
	set_constant(aggregation, "user_stacks", user);
	set_constant(aggregation, "max_stack", frames);
}

bool aggregation_next(struct aggregation *aggregation, __u64 before, struct streamed *sample,
		      __u64 *lost)
{
	return rings_next(aggregation->rings, before, sample, lost);
}

/* --- loading, attaching ----------------------------------------------------------------------- */

/* The place of the variable by which an object knows the interval; -1: it has none. */
static long interval_offset(const struct aggregation *aggregation)
{
	const struct btf *btf = bpf_object__btf(aggregation->object);
	__s32 id = btf__find_by_name_kind(btf, "interval", BTF_KIND_VAR);
	__s32 section = btf__find_by_name_kind(btf, ".bss", BTF_KIND_DATASEC);
	const struct btf_type *type = id < 0 || section < 0 ? NULL : btf__type_by_id(btf, section);

	for (int i = 0; type && i < btf_vlen(type); i++)
		if (btf_var_secinfos(type)[i].type == (__u32)id)
			return btf_var_secinfos(type)[i].offset;
	return -1;
}

static int map_interval(struct aggregation *aggregation, const struct host *host,
			struct refusal *refusal)
{
	struct bpf_map *variables = bpf_object__find_map_by_name(aggregation->object, ".bss");
	long offset = interval_offset(aggregation);

	if (offset < 0)
		return 0;
	aggregation->variables = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED,
				      bpf_map__fd(variables), 0);
	if (aggregation->variables == MAP_FAILED) {
		aggregation->variables = NULL;
		return bpf_denied(refusal, host, "mapping the BPF program's variables", errno, "");
	}
	aggregation->interval = (volatile __u32 *)(aggregation->variables + offset);
	return 0;
}

int aggregation_load(struct aggregation *aggregation, const struct host *host,
		     struct refusal *refusal)
{
	struct bpf_map *tables = bpf_object__find_map_by_name(aggregation->object, "tables");
	struct bpf_program *program;
	int err, highest = -1;

	for (int cpu = cpus_next(&host->possible, 0); cpu >= 0;
	     cpu = cpus_next(&host->possible, cpu + 1))
		highest = cpu;
	aggregation->nr_cpus = highest + 1;
	aggregation->numbers = calloc(aggregation->nr_cpus, sizeof(*aggregation->numbers));
	aggregation->nr_numbers = calloc(aggregation->nr_cpus, sizeof(*aggregation->nr_numbers));

	last_words[0] = '\0';
	bpf_object__for_each_program(program, aggregation->object)
		bpf_program__set_type(program, BPF_PROG_TYPE_PERF_EVENT);
	bpf_map__set_max_entries(tables, aggregation->nr_cpus);
	if (aggregation->stream)
		aggregation->rings = rings_prepare(aggregation->object, aggregation->nr_cpus,
						   aggregation->layout.key_size);
	aggregation->stacks = stacks_prepare(aggregation->object, aggregation->nr_cpus,
					     aggregation->stack_frames);
	err = bpf_object__load(aggregation->object);
	if (err)
		return bpf_denied(refusal, host, "loading the BPF program", -err, last_words);

	aggregation->mapped = aggregation->table.size * aggregation->nr_cpus;
	aggregation->tables = mmap(NULL, aggregation->mapped, PROT_READ, MAP_SHARED,
				   bpf_map__fd(tables), 0);
	if (aggregation->tables == MAP_FAILED) {
		aggregation->tables = NULL;
		return bpf_denied(refusal, host, "mapping the BPF program's tables", errno, "");
	}
	err = aggregation->stacks ? stacks_map(aggregation->stacks) : 0;
	if (err)
		return bpf_denied(refusal, host, "mapping the BPF program's stacks", -err, "");
	if (map_interval(aggregation, host, refusal))
		return -1;
	err = aggregation->rings ? rings_map(aggregation->rings) : 0;
	return err ? bpf_denied(refusal, host, "mapping the BPF program's rings", -err, "") : 0;
}

int aggregation_attach(struct aggregation *aggregation, int fd, const struct host *host,
		       struct refusal *refusal)
{
	const struct bpf_program *program = bpf_object__next_program(aggregation->object, NULL);
	/* Not bpf_program__attach_perf_event(): it enables the event at once, and its link closes
	 * the descriptor, which is libperf's. */
	int link = bpf_link_create(bpf_program__fd(program), fd, BPF_PERF_EVENT, NULL);

	if (link < 0)
		return bpf_denied(refusal, host, "attaching the BPF program", -link, "");
	aggregation->links = realloc(aggregation->links,
				     (aggregation->nr_links + 1) * sizeof(*aggregation->links));
	aggregation->links[aggregation->nr_links++] = link;
	return 0;
}

void aggregation_close(struct aggregation *aggregation)
{
	if (!aggregation)
		return;
	for (size_t i = 0; i < aggregation->nr_links; i++)
		close(aggregation->links[i]);
	if (aggregation->tables)
		munmap(aggregation->tables, aggregation->mapped);
	if (aggregation->variables)
		munmap(aggregation->variables, sysconf(_SC_PAGESIZE));
	rings_close(aggregation->rings);
	stacks_close(aggregation->stacks);
	bpf_object__close(aggregation->object);
	for (int cpu = 0; cpu < aggregation->nr_cpus; cpu++)
		free(aggregation->numbers[cpu]);
	keys_release(&aggregation->keys);
	free(aggregation->numbers);
	free(aggregation->nr_numbers);
	free(aggregation->links);
	free(aggregation->now);
	free(aggregation->before);
	free(aggregation->difference);
	free(aggregation->entries);
	free(aggregation->maximum);
	free(aggregation->layout.keys);
	free(aggregation->layout.values);
	free(aggregation->layout.by);
	free(aggregation);
}

const struct layout *aggregation_layout(const struct aggregation *aggregation)
{
	return &aggregation->layout;
}

/* --- reading ---------------------------------------------------------------------------------- */

static size_t words(const struct aggregation *aggregation)
{
	return aggregation->layout.value_size / sizeof(__u64);
}

/* Makes room for the values of all keys. */
static void make_room(struct aggregation *aggregation)
{
	size_t wanted = aggregation->room ? aggregation->room : 64, before = aggregation->room;
	size_t bytes = words(aggregation) * sizeof(__u64);

	while (wanted < aggregation->keys.nr)
		wanted *= 2;
	if (wanted == before)
		return;
	aggregation->now = realloc(aggregation->now, wanted * bytes);
	aggregation->before = realloc(aggregation->before, wanted * bytes);
	aggregation->difference = realloc(aggregation->difference, wanted * bytes);
	aggregation->entries = realloc(aggregation->entries, wanted * sizeof(struct entry));
	memset((char *)aggregation->before + before * bytes, 0, (wanted - before) * bytes);
	aggregation->room = wanted;
}

static const char *slot_at(const struct aggregation *aggregation, const char *table, size_t place)
{
	const __u32 *order = (const void *)(table + aggregation->table.order);

	return table + aggregation->table.slots + order[place] * aggregation->table.slot_size;
}

/* The number of a CPU's key. What its stack is called differs from CPU to CPU. */
static __u32 number_key(struct aggregation *aggregation, int cpu, const char *key)
{
	size_t size = aggregation->layout.key_size;
	__u64 words[size / sizeof(__u64)];
	__u32 *stack;

	if (!aggregation->stacks)
		return keys_number(&aggregation->keys, key);
	memcpy(words, key, size);
	stack = (__u32 *)((char *)words + aggregation->stack->offset);
	*stack = stacks_number(aggregation->stacks, cpu, *stack);
	return keys_number(&aggregation->keys, words);
}

/* Gives a number to the key of each slot that was taken since the last reading. Slots are never
 * given back, so that is done once for each. */
static void number_new_slots(struct aggregation *aggregation, int cpu, size_t used)
{
	const char *table = aggregation->tables + cpu * aggregation->table.size;
	size_t from = aggregation->nr_numbers[cpu];

	if (used == from)
		return;
	aggregation->numbers[cpu] = realloc(aggregation->numbers[cpu], used * sizeof(__u32));
	for (size_t place = from; place < used; place++)
		aggregation->numbers[cpu][place] =
			number_key(aggregation, cpu, slot_at(aggregation, table, place) +
							     aggregation->table.key);
	aggregation->nr_numbers[cpu] = used;
}

/* See entry_kind_t in bpf/shared.h: an aggregation without it has one entry a sample. */
static bool stands_for_sample(const struct aggregation *aggregation, const char *key)
{
	const struct member *kind = aggregation->kind;

	return !kind || *(const __u32 *)(key + kind->offset) == 0;
}

static void add_slots(struct aggregation *aggregation, int cpu, struct reading *reading)
{
	const char *table = aggregation->tables + cpu * aggregation->table.size;
	size_t n = words(aggregation);

	for (size_t place = 0; place < aggregation->nr_numbers[cpu]; place++) {
		const volatile __u64 *value =
			(const void *)(slot_at(aggregation, table, place) + aggregation->table.value);
		__u64 *sum = aggregation->now + aggregation->numbers[cpu][place] * n;
		/* Each is read once: the program goes on, and what is summed up here is to be the sum
		 * of what the entries say. */
		struct value_head head = {value[0], value[1]};

		if (stands_for_sample(aggregation, (const char *)value - aggregation->table.value +
							   aggregation->table.key)) {
			reading->aggregated += head.samples;
			reading->period += head.period;
		}
		sum[0] += head.samples;
		sum[1] += head.period;
		for (size_t i = sizeof(head) / sizeof(__u64); i < n; i++) {
			__u64 word = value[i];

			if (!aggregation->maximum[i])
				sum[i] += word;
			else if (word > sum[i])
				sum[i] = word;
		}
	}
}

/* The maxima of an interval; of what has come since it ended, where there is nothing else. */
static void take_maxima(const struct aggregation *aggregation, __u32 interval, const __u64 *now,
			__u64 *values)
{
	const struct layout *layout = &aggregation->layout;

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
static __u32 next_interval(struct aggregation *aggregation)
{
	return aggregation->interval ? (*aggregation->interval)++ : 0;
}

static void collect_changes(struct aggregation *aggregation, __u32 interval, struct reading *reading)
{
	size_t n = words(aggregation);

	for (size_t number = 0; number < aggregation->keys.nr; number++) {
		__u64 *now = aggregation->now + number * n, *before = aggregation->before + number * n;
		__u64 *difference = aggregation->difference + number * n;

		if (!memcmp(now, before, n * sizeof(__u64)))
			continue;
		for (size_t i = 0; i < n; i++)
			difference[i] = now[i] - before[i];
		take_maxima(aggregation, interval, now, difference);
		aggregation->entries[reading->nr_entries++] =
			(struct entry){keys_at(&aggregation->keys, number), difference};
	}
	memcpy(aggregation->before, aggregation->now, aggregation->keys.nr * n * sizeof(__u64));
}

void aggregation_read(struct aggregation *aggregation, struct reading *reading)
{
	__u32 interval = next_interval(aggregation);

	*reading = (struct reading){0};
	for (int cpu = 0; cpu < aggregation->nr_cpus; cpu++) {
		const struct table_head *head =
			(const void *)(aggregation->tables + cpu * aggregation->table.size);

		/* Pairs with the program's order of stores: a slot is whole before it is counted. */
		number_new_slots(aggregation, cpu, __atomic_load_n(&head->used, __ATOMIC_ACQUIRE));
	}
	make_room(aggregation);
	memset(aggregation->now, 0, aggregation->keys.nr * aggregation->layout.value_size);
	for (int cpu = 0; cpu < aggregation->nr_cpus; cpu++) {
		const volatile struct table_head *head =
			(const void *)(aggregation->tables + cpu * aggregation->table.size);

		add_slots(aggregation, cpu, reading);
		reading->table_full += head->table_full;
		reading->throttled += head->throttled;
		reading->stack_failed += head->stack_failed;
		reading->further_lost += head->further_lost;
		reading->period += head->period_of_full;
	}
	reading->further_lost -= aggregation->further_lost;
	aggregation->further_lost += reading->further_lost;
	reading->runs = reading->aggregated + reading->table_full + reading->stack_failed;
	reading->entries = aggregation->entries;
	reading->stacks = aggregation->stacks;
	collect_changes(aggregation, interval, reading);
}
