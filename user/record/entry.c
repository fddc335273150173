// SPDX-License-Identifier: GPL-2.0-only
#include "record/entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/key.h"
#include "record/owner.h"

void put_values(json_t *record, const struct host *host, const struct layout *layout, const __u64 *values)
{
	for (size_t i = 0; i < layout->nr_values; i++)
		json_object_set_new(record, layout->values[i].name,
				    member_value(host, &layout->values[i], values));
}

void add_streamed(struct fields *fields, const struct host *host, const struct layout *layout,
		  const void *key)
{
	for (size_t i = 0; i < layout->nr_keys; i++) {
		const struct member *member = &layout->keys[i];

		if (!member->streamed || !strcmp(member->type, "stack_id_t"))
			continue;
		if (!strcmp(member->type, "number_t"))
			fields_number(fields, member->name, member_number(member, key));
		else
			fields_value(fields, member->name, member_value(host, member, key));
	}
}

static void put_key(json_t *record, const struct host *host, const struct member *member, const void *key)
{
	json_t *value = member_value(host, member, key);

	json_object_set_new(record, member->name, value);
	if (!strcmp(member->name, "cgroup"))
		owner_put(record, json_string_value(value));
}

json_t *entry_value(const struct host *host, const struct layout *layout, const struct entry *entry)
{
	json_t *value = json_object();

	for (size_t i = 0; i < layout->nr_keys; i++)
		if (layout->keys[i].shown && strcmp(layout->keys[i].type, "stack_id_t"))
			put_key(value, host, &layout->keys[i], entry->key);
	put_values(value, host, layout, entry->values);
	return value;
}

void values_add(const struct layout *layout, __u64 *sum, const __u64 *values)
{
	for (size_t i = 0; i < layout->nr_values; i++) {
		size_t first = layout->values[i].offset / sizeof(__u64);
		size_t end = first + layout->values[i].size / sizeof(__u64);

		for (size_t word = first; word < end; word++)
			if (!layout->values[i].maximum)
				sum[word] += values[word];
			else if (values[word] > sum[word])
				sum[word] = values[word];
	}
}

__u64 key_number(const struct layout *layout, const struct entry *entry, const char *name)
{
	const struct member *member = layout_key_named(layout, name);

	return member ? member_number(member, entry->key) : 0;
}

int entry_compare(const struct entry *a, const struct entry *b)
{
	if (entry_weight(a) != entry_weight(b))
		return entry_weight(a) < entry_weight(b) ? 1 : -1;
	return a->values[0] < b->values[0] ? 1 : a->values[0] > b->values[0] ? -1 : 0;
}

static int by_weight(const void *a, const void *b, void *key_size)
{
	const struct entry *x = a, *y = b;
	int order = entry_compare(x, y);

	return order ? order : memcmp(x->key, y->key, *(const size_t *)key_size); /* the same in every run */
}

void entries_sort(const struct layout *layout, struct entry *entries, size_t nr)
{
	size_t key_size = layout->key_size;

	qsort_r(entries, nr, sizeof(*entries), by_weight, &key_size);
}

json_t *rest_value(const struct host *host, const struct layout *layout, const struct entry *entries,
		   size_t nr, __u64 nr_shed, const __u64 *shed)
{
	json_t *value = json_pack("{s:I}", "entries", (json_int_t)(nr + nr_shed));
	__u64 *sum = xcalloc(1, layout->value_size);

	if (nr_shed)
		values_add(layout, sum, shed);

	for (size_t i = 0; i < nr; i++)
		values_add(layout, sum, entries[i].values);
	put_values(value, host, layout, sum);
	free(sum);
	return value;
}
