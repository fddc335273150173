// SPDX-License-Identifier: GPL-2.0-only
#include "record/called.h"

#include <stdlib.h>
#include <string.h>

#include "base/interned.h"
#include "base/memory.h"
#include "record/chains.h"
#include "record/entry.h"
#include "record/key.h"
#include "record/rows.h"

struct called {
	const struct host *host;
	const struct layout *layout;
	bool by_tables;		    /* see called_new() */
	const struct member *stack; /* the key's member that is the stack */
	__u64 nr_shed, *shed;	    /* see struct reading */
	struct chains *chains;
	/* Each different entry once. The key is the BPF program's, with the chain's number in place of the
	 * stack's. */
	struct interned keys;
	__u64 *sums; /* sums of values, layout.value_size bytes for each key, by the key's number */
	size_t room; /* the number of keys that `sums` has room for */
	struct entry *entries;
};

static __u32 *stack_of(const struct called *called, const void *key)
{
	return (__u32 *)((char *)key + called->stack->offset);
}

static void take_entry(struct called *called, const struct entry *entry)
{
	const struct layout *layout = called->layout;
	__u64 words[layout->key_size / sizeof(__u64)];
	size_t nr = layout->value_size / sizeof(__u64), before = called->keys.nr;
	__u32 number;

	memcpy(words, entry->key, layout->key_size);
	*stack_of(called, words) =
		chains_number(called->chains, *stack_of(called, words), key_comm(layout, words));
	chains_count(called->chains, *stack_of(called, words), entry->values[0]);
	number = interned_number(&called->keys, words);
	called->sums = xroom(called->sums, number, &called->room, layout->value_size);
	if (number == before)
		memcpy(called->sums + number * nr, entry->values, layout->value_size);
	else
		values_add(layout, called->sums + number * nr, entry->values);
}

struct called *called_new(const struct host *host, struct codes *codes, unsigned int detail, bool by_tables,
			  const struct layout *layout)
{
	struct called *called = xcalloc(1, sizeof(*called));

	called->host = host;
	called->by_tables = by_tables;
	called->layout = layout;
	called->stack = layout_key_of_type(layout, "stack_id_t");
	called->chains = chains_new(NULL, codes, detail);
	called->shed = xcalloc(1, layout->value_size);
	interned_init(&called->keys, layout->key_size);
	return called;
}

void called_from(struct called *called, const struct stacks *stacks)
{
	chains_of(called->chains, stacks);
}

bool called_try(struct called *called, const struct entry *entry)
{
	if (!chains_try(called->chains, *stack_of(called, entry->key), key_comm(called->layout, entry->key)))
		return false;
	take_entry(called, entry);
	return true;
}

void called_add(struct called *called, const struct reading *reading)
{
	size_t words = called->layout->value_size / sizeof(__u64);

	called_from(called, reading->stacks);
	for (size_t i = 0; i < reading->nr_entries; i++)
		take_entry(called, &reading->entries[i]);
	chains_count_others(called->chains, &reading->shed_stacks);
	called->nr_shed = reading->nr_shed;
	values_add(called->layout, called->shed, reading->shed);
	called->entries = xcalloc(called->keys.nr + 1, sizeof(*called->entries));
	for (size_t i = 0; i < called->keys.nr; i++)
		called->entries[i] = (struct entry){interned_at(&called->keys, i), called->sums + i * words};
	entries_sort(called->layout, called->entries, called->keys.nr);
}

void called_release(struct called *called)
{
	if (!called)
		return;
	chains_release(called->chains);
	interned_release(&called->keys);
	free(called->sums);
	free(called->shed);
	free(called->entries);
	free(called);
}

size_t called_count(const struct called *called)
{
	return called->keys.nr;
}

void called_put(struct called *called, json_t *record, size_t top)
{
	struct entry_columns columns = entry_columns(called->host, called->layout, NULL);
	struct rows rows = {0};

	json_object_set_new(record, "stacks", chains_account(called->chains, called->by_tables));
	for (size_t i = 0; i < top; i++) {
		struct compact *text = rows_begin(&rows);

		chains_append(called->chains, text, *stack_of(called, called->entries[i].key));
		append_entry(text, &columns, &called->entries[i]);
		rows_end(&rows);
	}
	if (top < called->keys.nr || called->nr_shed)
		json_object_set_new(record, "rest",
				    rest_value(called->host, called->layout, called->entries + top,
					       called->keys.nr - top, called->nr_shed, called->shed));
	chains_put_frames(called->chains, record);
	rows_put(&rows, record, "entries");
}
