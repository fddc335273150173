// SPDX-License-Identifier: GPL-2.0-only
#include "record/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/code.h"
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

static size_t value_words(const struct folded *folded)
{
	return folded->layout->value_size / sizeof(__u64);
}

/* They follow the key, which consists of 64-bit words. */
static struct fold_numbers *numbers_of(const struct folded *folded, const void *key)
{
	return (struct fold_numbers *)((char *)key + folded->layout->key_size);
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
		memcpy(folded->values + number * value_words(folded), values, folded->layout->value_size);
	else
		values_add(folded->layout, folded->values + number * value_words(folded), values);
}

static void add_folded(struct folded *folded, const struct entry *entry, const struct fold_numbers *numbers)
{
	const struct layout *layout = folded->layout;
	__u64 key[layout->key_size / sizeof(__u64) + 1];

	memset(key, 0, sizeof(key));
	for (size_t i = 0; i < layout->nr_keys; i++)
		if (layout->keys[i].shown)
			memcpy((char *)key + layout->keys[i].offset,
			       (const char *)entry->key + layout->keys[i].offset, layout->keys[i].size);
	*numbers_of(folded, key) = *numbers;
	add_values(folded, key, entry->values);
}

struct datum entry_datum(const struct layout *layout, const struct entry *entry, unsigned int detail)
{
	return (struct datum){.address = key_number(layout, entry, "cacheline") +
					 key_number(layout, entry, "offset"),
			      .ip = key_number(layout, entry, "ip"),
			      .pid = key_number(layout, entry, "pid"),
			      .comm = key_comm(layout, entry->key),
			      .detail = detail & CODE_OF_DATA};
}

/* Returns false if there is no time for a name and `waits` is set. */
static bool find_numbers(const struct folded *folded, const struct entry *entry, bool waits,
			 struct fold_numbers *numbers)
{
	const struct layout *layout = folded->layout;
	unsigned int detail = folded->detail & ~CODE_OF_DATA;
	__u64 count = entry->values[0], ip;
	struct datum datum;
	const char *comm;
	pid_t pid;

	*numbers = (struct fold_numbers){0};
	if (folded->detail & CODE_OF_DATA) {
		datum = entry_datum(layout, entry, folded->detail);
		if (!codes_datum(folded->codes, &datum, count, waits, &numbers->datum))
			return false;
		numbers->datum++;
	}
	if (!detail)
		return true;
	ip = key_number(layout, entry, "ip");
	pid = key_number(layout, entry, "pid");
	comm = key_comm(layout, entry->key);
	if (!waits)
		numbers->code = codes_number(folded->codes, detail, pid, comm, ip, count);
	else if (!codes_try(folded->codes, detail, pid, comm, ip, count, &numbers->code))
		return false;
	numbers->code++;
	return true;
}

void folded_add(struct folded *folded, struct reading *reading)
{
	struct fold_numbers numbers;

	qsort(reading->entries, reading->nr_entries, sizeof(*reading->entries), by_weight);
	for (size_t i = 0; i < reading->nr_entries; i++) {
		find_numbers(folded, &reading->entries[i], false, &numbers);
		add_folded(folded, &reading->entries[i], &numbers);
	}
}

bool folded_try(struct folded *folded, const struct entry *entry)
{
	struct fold_numbers numbers;

	if (!find_numbers(folded, entry, true, &numbers))
		return false;
	add_folded(folded, entry, &numbers);
	return true;
}

/* --- keeping some ----------------------------------------------------------------------------- */

size_t folded_list(struct folded *folded)
{
	free(folded->entries);
	folded->entries = xmalloc((folded->keys.nr + 1) * sizeof(*folded->entries));
	for (size_t i = 0; i < folded->keys.nr; i++)
		folded->entries[i] = (struct entry){interned_at(&folded->keys, i),
						    folded->values + i * value_words(folded)};
	return folded->keys.nr;
}

static void mark_used(const struct fold_numbers *numbers, bool *used)
{
	if (numbers->code)
		used[numbers->code - 1] = true;
	if (numbers->datum)
		used[numbers->datum - 1] = true;
}

void folded_choose(struct folded *folded, size_t most, bool *used)
{
	size_t nr = folded_list(folded), kept = nr < most ? nr : most;

	entries_sort(folded->layout, folded->entries, nr);
	for (size_t i = 0; i < nr; i++)
		if (i < kept)
			mark_used(numbers_of(folded, folded->entries[i].key), used);
		else
			values_add(folded->layout, folded->shed, folded->entries[i].values);
	folded->nr_shed += nr - kept;
	folded->nr_chosen = kept;
}

static void renumber_entry(struct fold_numbers *of, const __u32 *numbers)
{
	if (of->code)
		of->code = numbers[of->code - 1] + 1;
	if (of->datum)
		of->datum = numbers[of->datum - 1] + 1;
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
		renumber_entry(numbers_of(folded, key), numbers);
		add_values(folded, key, before.entries[i].values);
	}
	interned_release(&before.keys);
	free(before.values);
	free(before.entries);
}

/* --- giving out ------------------------------------------------------------------------------- */

void folded_append(struct compact *text, const struct folded *folded, const struct entry *entry)
{
	const struct fold_numbers *numbers = numbers_of(folded, entry->key);

	if (numbers->code)
		append_code(text, ",\"code\":", codes_at(folded->codes, numbers->code - 1));
	if (numbers->datum)
		append_datum(text, codes_at(folded->codes, numbers->datum - 1));
}
