// SPDX-License-Identifier: GPL-2.0-only
#include "record/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/entry.h"
#include "record/key.h"

struct folded *folded_new(const struct layout *layout, struct codes *codes, unsigned int detail)
{
	struct folded *folded = xcalloc(1, sizeof(*folded));

	folded->layout = layout;
	folded->codes = codes;
	folded->detail = detail;
	folded->shed = xcalloc(1, layout->value_size);
	interned_init(&folded->keys, layout->key_size + sizeof(__u64));
	return folded;
}

void folded_release(struct folded *folded)
{
	if (!folded)
		return;
	interned_release(&folded->keys);
	free(folded->values);
	free(folded->entries);
	free(folded->shed);
	free(folded);
}

static size_t words(const struct folded *folded)
{
	return folded->layout->value_size / sizeof(__u64);
}

/* The code's number, which follows the key. Keys consist of 64-bit words. */
static __u64 *code_of(const struct folded *folded, const void *key)
{
	return (__u64 *)((char *)key + folded->layout->key_size);
}

/* --- taking in -------------------------------------------------------------------------------- */

static int by_weight(const void *a, const void *b)
{
	return entry_compare(a, b);
}

static void add_values(struct folded *folded, const void *key, const __u64 *values)
{
	size_t before = folded->keys.nr;
	__u32 number = interned_number(&folded->keys, key);

	folded->values = xroom(folded->values, number, &folded->room, folded->layout->value_size);
	if (number == before)
		memcpy(folded->values + number * words(folded), values, folded->layout->value_size);
	else
		values_add(folded->layout, folded->values + number * words(folded), values);
}

static void add(struct folded *folded, const struct entry *entry, __u32 code)
{
	const struct layout *layout = folded->layout;
	__u64 key[layout->key_size / sizeof(__u64) + 1];

	memset(key, 0, sizeof(key));
	for (size_t i = 0; i < layout->nr_keys; i++)
		if (layout->keys[i].shown)
			memcpy((char *)key + layout->keys[i].offset,
			       (const char *)entry->key + layout->keys[i].offset, layout->keys[i].size);
	*code_of(folded, key) = code;
	add_values(folded, key, entry->values);
}

void folded_add(struct folded *folded, struct reading *reading)
{
	const struct layout *layout = folded->layout;

	qsort(reading->entries, reading->nr_entries, sizeof(*reading->entries), by_weight);
	for (size_t i = 0; i < reading->nr_entries; i++) {
		const struct entry *entry = &reading->entries[i];

		add(folded, entry,
		    codes_number(folded->codes, folded->detail, key_number(layout, entry, "pid"),
				 key_comm(layout, entry->key), key_number(layout, entry, "ip"),
				 entry->values[0]));
	}
}

bool folded_try(struct folded *folded, const struct entry *entry)
{
	const struct layout *layout = folded->layout;
	__u32 code;

	if (!codes_try(folded->codes, folded->detail, key_number(layout, entry, "pid"),
		       key_comm(layout, entry->key), key_number(layout, entry, "ip"), entry->values[0],
		       &code))
		return false;
	add(folded, entry, code);
	return true;
}

/* --- keeping some ----------------------------------------------------------------------------- */

size_t folded_list(struct folded *folded)
{
	free(folded->entries);
	folded->entries = xmalloc((folded->keys.nr + 1) * sizeof(*folded->entries));
	for (size_t i = 0; i < folded->keys.nr; i++)
		folded->entries[i] =
			(struct entry){interned_at(&folded->keys, i), folded->values + i * words(folded)};
	return folded->keys.nr;
}

void folded_choose(struct folded *folded, size_t most, bool *used)
{
	size_t nr = folded_list(folded), kept = nr < most ? nr : most;

	entries_sort(folded->layout, folded->entries, nr);
	for (size_t i = 0; i < nr; i++)
		if (i < kept)
			used[*code_of(folded, folded->entries[i].key)] = true;
		else
			values_add(folded->layout, folded->shed, folded->entries[i].values);
	folded->nr_shed += nr - kept;
	folded->nr_chosen = kept;
}

void folded_keep(struct folded *folded, const __u32 *numbers)
{
	struct folded before = *folded;

	interned_init(&folded->keys, before.keys.size);
	folded->values = NULL;
	folded->entries = NULL;
	folded->room = 0;
	for (size_t i = 0; i < before.nr_chosen; i++) {
		__u64 key[before.keys.size / sizeof(__u64)];

		memcpy(key, before.entries[i].key, before.keys.size);
		*code_of(folded, key) = numbers[*code_of(folded, key)];
		add_values(folded, key, before.entries[i].values);
	}
	interned_release(&before.keys);
	free(before.values);
	free(before.entries);
}

/* --- giving out ------------------------------------------------------------------------------- */

__u32 folded_code(const struct folded *folded, const struct entry *entry)
{
	return *code_of(folded, entry->key);
}
