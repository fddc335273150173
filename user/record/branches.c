// SPDX-License-Identifier: GPL-2.0-only
#include "record/branches.h"

#include <stdlib.h>
#include <string.h>

#include "collection/keys.h"
#include "record/key.h"
#include "record/module.h"
#include "record/record.h"
#include "shared.h"

#define DEPTH_MOST 16

struct branches {
	const struct host *host;
	const struct layout *layout;
	/* Each edge and range once: the program's key with offsets for addresses where they are known, then
	 * the two modules. A pid that is not to be shown is 0. */
	struct keys keys;
	struct sums {
		__u64 count, mispredicted;
	} *sums;       /* by the key's number */
	__u32 *order;  /* numbers, by falling count */
	__u64 depths[DEPTH_MOST + 1]; /* samples, by how many branches came with them */
	__u64 mispredicted, unresolved, broken; /* counts */
	__u64 lost;    /* edges and ranges that found no place */
};

/* What follows the program's key. */
struct modules {
	const char *from, *to; /* kept by record/module.c, so that pointers can be compared; NULL: none */
};

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

/* How often it came: the head of its value. */
static __u64 count_of(const struct entry *entry)
{
	return ((const struct value_head *)entry->values)->samples;
}

static __u32 kind_of(const struct branches *branches, const void *key)
{
	return *(__u32 *)of_key(branches, key, "kind");
}

static const struct modules *modules_of(const struct branches *branches, const void *key)
{
	return (const void *)((const char *)key + branches->layout->key_size);
}

/* --- taking in -------------------------------------------------------------------------------- */

static bool is_kernel(__u64 address)
{
	return address >> 63;
}

/* Turns the address into an offset where its module is known. */
static const char *resolve(pid_t pid, __u64 *address)
{
	return is_kernel(*address) ? NULL : module_of(pid, *address, address);
}

static void take_place(struct branches *branches, const struct entry *entry)
{
	const struct layout *layout = branches->layout;
	__u64 count = count_of(entry), missed;
	__u64 words[(layout->key_size + sizeof(struct modules)) / sizeof(__u64)];
	struct modules *modules = (void *)((char *)words + layout->key_size);
	__u64 *from = of_key(branches, words, "from"), *to = of_key(branches, words, "to");
	__u32 *kind = of_key(branches, words, "kind"), *pid = of_key(branches, words, "pid"), number;

	memcpy(words, entry->key, layout->key_size);
	*modules = (struct modules){resolve(*pid, from), resolve(*pid, to)};
	if ((!modules->from && !is_kernel(*from)) || (!modules->to && !is_kernel(*to)))
		branches->unresolved += count;
	if (!member(layout->keys, layout->nr_keys, "pid")->shown)
		*pid = 0;
	missed = *kind == BRANCH_MISSED ? count : 0;
	if (missed)
		*kind = BRANCH_EDGE;
	number = keys_number(&branches->keys, words);
	branches->sums[number].count += count;
	branches->sums[number].mispredicted += missed;
	branches->mispredicted += missed;
}

static void take_stack(struct branches *branches, const struct entry *entry)
{
	__u64 depth = *(__u64 *)of_key(branches, entry->key, "from");

	branches->depths[depth] += count_of(entry);
}

static void take_broken(struct branches *branches, const struct entry *entry)
{
	branches->broken += count_of(entry);
}

static void (*const take[])(struct branches *branches, const struct entry *entry) = {
	[BRANCH_STACK] = take_stack,
	[BRANCH_EDGE] = take_place,
	[BRANCH_MISSED] = take_place,
	[BRANCH_RANGE] = take_place,
	[BRANCH_BROKEN] = take_broken,
};

/* Each once: entries of one process need not stand together. */
static void look_at_processes(const struct branches *branches, const struct reading *reading)
{
	struct keys pids;

	keys_init(&pids, sizeof(__u64));
	for (size_t i = 0; i < reading->nr_entries; i++) {
		__u64 pid = *(__u32 *)of_key(branches, reading->entries[i].key, "pid");
		size_t seen = pids.nr;

		if (pid && keys_number(&pids, &pid) == seen)
			module_look(pid);
	}
	keys_release(&pids);
}

static int by_count(const void *a, const void *b, void *of)
{
	const struct branches *branches = of;
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	if (branches->sums[x].count != branches->sums[y].count)
		return branches->sums[x].count < branches->sums[y].count ? 1 : -1;
	/* The same order in every run: modules are left out, their pointers differ. */
	return memcmp(keys_at(&branches->keys, x), keys_at(&branches->keys, y), branches->layout->key_size);
}

struct branches *branches_of(const struct host *host, const struct layout *layout,
			     const struct reading *reading)
{
	struct branches *branches = calloc(1, sizeof(*branches));

	branches->host = host;
	branches->layout = layout;
	branches->lost = reading->further_lost;
	branches->sums = calloc(reading->nr_entries + 1, sizeof(*branches->sums));
	keys_init(&branches->keys, layout->key_size + sizeof(struct modules));
	look_at_processes(branches, reading);
	for (size_t i = 0; i < reading->nr_entries; i++)
		take[kind_of(branches, reading->entries[i].key)](branches, &reading->entries[i]);
	branches->order = calloc(branches->keys.nr + 1, sizeof(*branches->order));
	for (size_t i = 0; i < branches->keys.nr; i++)
		branches->order[i] = i;
	qsort_r(branches->order, branches->keys.nr, sizeof(*branches->order), by_count, branches);
	return branches;
}

void branches_release(struct branches *branches)
{
	keys_release(&branches->keys);
	free(branches->sums);
	free(branches->order);
	free(branches);
}

size_t branches_count(const struct branches *branches)
{
	return branches->keys.nr;
}

/* --- giving out ------------------------------------------------------------------------------- */

static json_t *place_value(const char *module, __u64 address)
{
	json_t *place = json_object();

	if (is_kernel(address))
		json_object_set_new(place, "module", json_string("[kernel]"));
	else if (module)
		json_object_set_new(place, "module", value_text(module, strlen(module)));
	json_object_set_new(place, module ? "offset" : "address", value_hex(address));
	return place;
}

json_t *branches_place(pid_t pid, __u64 address)
{
	const char *module = resolve(pid, &address);

	return place_value(module, address);
}

/* The keys that were asked for beside the places. */
static void put_identity(const struct branches *branches, json_t *value, const void *key)
{
	static const char *const names[] = {"pid", "comm", "cgroup"};
	const struct layout *layout = branches->layout;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct member *found = member(layout->keys, layout->nr_keys, names[i]);

		if (found->shown)
			json_object_set_new(value, names[i],
					    member_value(branches->host, found, key));
	}
}

static json_t *entry_value(const struct branches *branches, __u32 number)
{
	const void *key = keys_at(&branches->keys, number);
	const struct modules *modules = modules_of(branches, key);
	const struct sums *sums = &branches->sums[number];
	bool edge = kind_of(branches, key) == BRANCH_EDGE;
	json_t *value = json_pack("{s:s}", "kind", edge ? "edge" : "range");

	json_object_set_new(value, "from",
			    place_value(modules->from, *(__u64 *)of_key(branches, key, "from")));
	json_object_set_new(value, "to", place_value(modules->to, *(__u64 *)of_key(branches, key, "to")));
	put_identity(branches, value, key);
	json_object_set_new(value, "count", json_integer(sums->count));
	if (edge)
		json_object_set_new(value, "mispredicted", json_integer(sums->mispredicted));
	return value;
}

static void put_rest(const struct branches *branches, json_t *record, size_t top)
{
	size_t nr = branches->keys.nr - top;
	struct sums sum = {0};

	if (!nr)
		return;
	for (size_t i = top; i < branches->keys.nr; i++) {
		sum.count += branches->sums[branches->order[i]].count;
		sum.mispredicted += branches->sums[branches->order[i]].mispredicted;
	}
	json_object_set_new(record, "rest",
			    json_pack("{s:I, s:I, s:I}", "entries", (json_int_t)nr, "count",
				      (json_int_t)sum.count, "mispredicted",
				      (json_int_t)sum.mispredicted));
}

void branches_put(const struct branches *branches, json_t *record, size_t top)
{
	json_t *depths = json_array(), *entries = json_array();
	__u64 delivered = 0;

	for (size_t depth = 0; depth <= DEPTH_MOST; depth++) {
		delivered += depth * branches->depths[depth];
		json_array_append_new(depths, json_integer(branches->depths[depth]));
	}
	json_object_set_new(record, "stacks", json_pack("{s:o}", "by_depth", depths));
	json_object_set_new(record, "branches",
			    json_pack("{s:I, s:I, s:I, s:I, s:I}", "delivered", (json_int_t)delivered,
				      "mispredicted", (json_int_t)branches->mispredicted, "unresolved",
				      (json_int_t)branches->unresolved, "broken",
				      (json_int_t)branches->broken, "table_full",
				      (json_int_t)branches->lost));
	for (size_t i = 0; i < top; i++)
		json_array_append_new(entries, entry_value(branches, branches->order[i]));
	put_rest(branches, record, top);
	json_object_set_new(record, "entries", entries);
}

json_t *program_value(const struct program *program)
{
	json_t *value = json_object(), *segments = json_array();

	for (size_t i = 0; i < program->nr; i++) {
		json_t *segment = json_object();

		json_object_set_new(segment, "offset", value_hex(program->segments[i].offset));
		json_object_set_new(segment, "size", json_integer(program->segments[i].size));
		json_object_set_new(segment, "address", value_hex(program->segments[i].address));
		json_array_append_new(segments, segment);
	}
	json_object_set_new(value, "path", value_text(program->path, strlen(program->path)));
	json_object_set_new(value, "code", segments);
	return value;
}
