// SPDX-License-Identifier: GPL-2.0-only
#include "record/fold.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "record/code.h"
#include "record/entry.h"
#include "record/key.h"

static int by_weight(const void *a, const void *b)
{
	return entry_compare(a, b);
}

/* The code's number, which follows the key. Keys consist of 64-bit words. */
static __u64 *code_of(const struct folded *folded, const void *key)
{
	return (__u64 *)((char *)key + folded->layout->key_size);
}

static void add(struct folded *folded, const struct entry *entry, unsigned int detail)
{
	const struct layout *layout = folded->layout;
	__u64 key[layout->key_size / sizeof(__u64) + 1];
	size_t words = layout->value_size / sizeof(__u64), before = folded->keys.nr;
	__u32 number;

	memset(key, 0, sizeof(key));
	for (size_t i = 0; i < layout->nr_keys; i++)
		if (layout->keys[i].shown)
			memcpy((char *)key + layout->keys[i].offset,
			       (const char *)entry->key + layout->keys[i].offset, layout->keys[i].size);
	*code_of(folded, key) =
		codes_number(folded->codes, detail, key_number(layout, entry, "pid"),
			     key_comm(layout, entry->key), key_number(layout, entry, "ip"), entry->values[0]);
	number = interned_number(&folded->keys, key);
	if (number == before)
		memcpy(folded->values + number * words, entry->values, layout->value_size);
	else
		values_add(layout, folded->values + number * words, entry->values);
}

void fold(struct folded *folded, const struct layout *layout, struct reading *reading, struct codes *codes,
	  unsigned int detail)
{
	*folded = (struct folded){.layout = layout, .codes = codes};
	interned_init(&folded->keys, layout->key_size + sizeof(__u64));
	folded->values = xmalloc((reading->nr_entries + 1) * layout->value_size);
	qsort(reading->entries, reading->nr_entries, sizeof(*reading->entries), by_weight);
	for (size_t i = 0; i < reading->nr_entries; i++)
		add(folded, &reading->entries[i], detail);
	folded->nr = folded->keys.nr;
	folded->entries = xmalloc((folded->nr + 1) * sizeof(*folded->entries));
	for (size_t i = 0; i < folded->nr; i++)
		folded->entries[i] = (struct entry){
			interned_at(&folded->keys, i),
			folded->values + i * (layout->value_size / sizeof(__u64)),
		};
}

void folded_release(struct folded *folded)
{
	interned_release(&folded->keys);
	free(folded->values);
	free(folded->entries);
}

json_t *folded_value(const struct host *host, const struct folded *folded, const struct entry *entry)
{
	json_t *value = entry_value(host, folded->layout, entry);

	json_object_set_new(value, "code", code_value(codes_at(folded->codes, *code_of(folded, entry->key))));
	return value;
}
