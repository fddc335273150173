// SPDX-License-Identifier: GPL-2.0-only
#include "record/entry.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/digits.h"
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
		add_key_member(fields, host, member, key);
	}
}

/* --- entries as text -------------------------------------------------------------------------- */

static void begin_column(struct entry_columns *columns, const struct member *member, bool of_values)
{
	struct column *column = &columns->list[columns->nr++];

	*column = (struct column){.form = member_form(member),
				  .offset = member->offset,
				  .size = member->size,
				  .of_values = of_values,
				  .owner = !strcmp(member->name, "cgroup")};
	column->head_length = snprintf(column->head, sizeof(column->head), ",\"%s\":", member->name);
}

struct entry_columns entry_columns(const struct host *host, const struct layout *layout, const char *without)
{
	struct entry_columns columns = {.host = host};

	for (size_t i = 0; i < layout->nr_keys; i++)
		if (layout->keys[i].shown && strcmp(layout->keys[i].type, "stack_id_t") &&
		    (!without || strcmp(layout->keys[i].name, without)))
			begin_column(&columns, &layout->keys[i], false);
	for (size_t i = 0; i < layout->nr_values; i++)
		begin_column(&columns, &layout->values[i], true);
	return columns;
}

static void append_owner(struct compact *text, const struct field *cgroup)
{
	struct fields fields = {.nr = 0};
	json_t *path = field_json(cgroup);

	owner_add(&fields, json_string_value(path));
	compact_add_fields(text, &fields);
	fields_clear(&fields);
	json_decref(path);
}

/* A member that is not only a number. */
static void append_field(struct compact *text, const struct host *host, const struct column *column,
			 const void *at)
{
	struct field field;

	field_set_member(&field, column->form, host, at, column->size);
	compact_add_field(text, &field);
	if (column->owner)
		append_owner(text, &field);
	if (field.kind == FIELD_VALUE)
		json_decref(field.value);
}

void append_entry(struct compact *text, const struct entry_columns *columns, const struct entry *entry)
{
	const size_t room = columns->nr * (COLUMN_HEAD + NUMBER_ROOM);
	char *at = compact_reserve(text, room);

	for (const struct column *column = columns->list; column < columns->list + columns->nr; column++) {
		const void *member =
			(column->of_values ? (const char *)entry->values : entry->key) + column->offset;

		memcpy(at, column->head, COLUMN_HEAD);
		at += column->head_length;
		if (column->form->kind == FIELD_NUMBER && !column->form->set) {
			at = put_number(at, plain_number(member, column->size));
		} else if (column->form->kind == FIELD_HEX) {
			at = put_hex(at, plain_number(member, column->size));
		} else {
			text->used = at - text->text;
			append_field(text, columns->host, column, member);
			at = compact_reserve(text, room);
		}
	}
	text->used = at - text->text;
}

/* --- sums ------------------------------------------------------------------------------------- */

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

/* --- order ------------------------------------------------------------------------------------- */

/* The part of an entry that it is sorted by now, and its bits in which entries differ. */
struct sorted_word {
	bool of_values, falling;
	size_t offset;
	__u64 differs;
};

static const unsigned char *sorted_bytes(const struct entry *entry, const struct sorted_word *word)
{
	return (const unsigned char *)(word->of_values ? (const void *)entry->values : entry->key) +
	       word->offset;
}

static struct sorted_word sorted_word(const struct entry *entries, size_t nr, bool of_values, size_t offset)
{
	struct sorted_word word = {.of_values = of_values, .falling = of_values, .offset = offset};
	__u64 first = *(const __u64 *)sorted_bytes(&entries[0], &word);

	for (size_t i = 1; i < nr; i++)
		word.differs |= *(const __u64 *)sorted_bytes(&entries[i], &word) ^ first;
	return word;
}

/* Sorts by one byte, from one list into the other. */
static void distribute(struct entry *to, const struct entry *from, size_t nr, const struct sorted_word *word,
		       size_t byte)
{
	unsigned int flipped = word->falling ? 255 : 0, at = 0, places[256] = {0};

	for (size_t i = 0; i < nr; i++)
		places[sorted_bytes(&from[i], word)[byte] ^ flipped]++;
	for (size_t i = 0; i < 256; i++) {
		unsigned int count = places[i];

		places[i] = at;
		at += count;
	}
	for (size_t i = 0; i < nr; i++)
		to[places[sorted_bytes(&from[i], word)[byte] ^ flipped]++] = from[i];
}

struct sorting {
	struct entry *from, *to;
	size_t nr;
};

/* Sorts by the bytes of a word, the least significant first: those of a key are compared as memcmp() does,
 * and those of a value as a number, which is little endian. Bytes that are the same in all entries are left
 * out. */
static void sort_by_word(struct sorting *sorting, bool of_values, size_t offset)
{
	struct sorted_word word = sorted_word(sorting->from, sorting->nr, of_values, offset);

	for (size_t i = 0; i < sizeof(__u64); i++) {
		size_t byte = of_values ? i : sizeof(__u64) - 1 - i;
		struct entry *from = sorting->from;

		if (!(word.differs >> 8 * byte & 255))
			continue;
		distribute(sorting->to, from, sorting->nr, &word, byte);
		sorting->from = sorting->to;
		sorting->to = from;
	}
}

/* A comparison of ten thousand entries with each other would cost more than to write them. */
void entries_sort(const struct layout *layout, struct entry *entries, size_t nr)
{
	struct entry *other = xmalloc(nr * sizeof(*other));
	struct sorting sorting = {entries, other, nr};

	for (size_t left = nr ? layout->key_size : 0; left; left -= sizeof(__u64))
		sort_by_word(&sorting, false, left - sizeof(__u64)); /* the same order in every run */
	if (nr) {
		sort_by_word(&sorting, true, offsetof(struct value_head, samples));
		sort_by_word(&sorting, true, offsetof(struct value_head, period));
	}
	if (sorting.from != entries)
		memcpy(entries, sorting.from, nr * sizeof(*entries));
	free(other);
}

/* --- the rest ---------------------------------------------------------------------------------- */

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
