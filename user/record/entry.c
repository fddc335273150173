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

static struct streamed_key streamed_key(const struct member *member)
{
	const struct member_form *form = member_form(member);

	return (struct streamed_key){member->name, member->offset, member->size, form,
				     !form->set && form->kind <= FIELD_HEX};
}

struct streamed_keys streamed_keys(const struct layout *layout)
{
	struct streamed_keys keys = {0};

	for (size_t i = 0; i < layout->nr_keys; i++) {
		const struct member *member = &layout->keys[i];

		if (member->streamed && strcmp(member->type, "stack_id_t"))
			keys.list[keys.nr++] = streamed_key(member);
	}
	return keys;
}

/* Most are as they were in the sample before. */
static __attribute__((noinline)) void add_other(struct fields *fields, const struct host *host,
						const struct streamed_key *key, const void *at)
{
	add_formed(fields, key->name, host, key->form, at, key->size);
}

void add_streamed(struct fields *fields, const struct host *host, const struct streamed_keys *keys,
		  const void *key)
{
	const struct streamed_key *at = keys->list;
	const struct field *field = &fields->list[fields->nr];
	size_t end = fields->nr + keys->nr;

	for (size_t nr = fields->nr; nr < end; nr++, at++, field++) {
		const void *from = (const char *)key + at->offset;

		if (at->plain && nr < fields->had && field->name == at->name &&
		    field->number == (json_int_t)plain_number(from, at->size))
			continue;
		fields->nr = nr;
		add_other(fields, host, at, from);
	}
	fields->nr = end;
}

/* --- entries as text -------------------------------------------------------------------------- */

static void begin_column(struct entry_columns *columns, const struct member *member, bool of_values)
{
	struct column *column = &columns->list[columns->nr++];
	const struct member_form *form = member_form(member);

	*column = (struct column){.form = form,
				  .kind = form->set ? FIELD_VALUE : form->kind,
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
	struct fields fields;
	json_t *path = field_json(cgroup);

	fields_begin(&fields);
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

static void append_cgroup(struct compact *text, struct entry_columns *columns, const struct column *column,
			  const void *at)
{
	__u64 cgroup = *(const __u64 *)at;
	size_t begun = text->used;

	if (columns->owner.length && columns->owner.cgroup == cgroup) {
		compact_add(text, columns->owner.text, columns->owner.length);
		return;
	}
	append_field(text, columns->host, column, at);
	columns->owner.length = text->used - begun <= OWNER_ROOM ? text->used - begun : 0;
	columns->owner.cgroup = cgroup;
	memcpy(columns->owner.text, text->text + begun, columns->owner.length);
}

void append_entry(struct compact *text, struct entry_columns *columns, const struct entry *entry)
{
	const size_t room = columns->nr * (COLUMN_HEAD + NUMBER_ROOM);
	char *at = compact_reserve(text, room);

	for (const struct column *column = columns->list, *end = column + columns->nr; column < end;
	     column++) {
		const void *member =
			(column->of_values ? (const char *)entry->values : entry->key) + column->offset;

		memcpy(at, column->head, COLUMN_HEAD);
		at += column->head_length;
		switch (column->kind) {
		case FIELD_NUMBER:
			at = put_number(at, plain_number(member, column->size));
			break;
		case FIELD_HEX:
			at = put_hex(at, plain_number(member, column->size));
			break;
		default:
			text->used = at - text->text;
			if (column->owner)
				append_cgroup(text, columns, column, member);
			else
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

static int compare_entries(const struct entry *x, const struct entry *y, size_t key_size)
{
	int order = entry_compare(x, y);

	return order ? order : memcmp(x->key, y->key, key_size); /* the same in every run */
}

/* From so many entries on, to put them into 256 groups costs less than to compare them. */
#define GROUPED_FROM 16

static void sort_few(struct entry *entries, size_t nr, size_t key_size)
{
	for (size_t i = 1, at; i < nr; i++) {
		struct entry entry = entries[i];

		for (at = i; at && compare_entries(&entry, &entries[at - 1], key_size) < 0; at--)
			entries[at] = entries[at - 1];
		entries[at] = entry;
	}
}

/* One of the 64-bit words that entries are sorted by, in this order: weight, samples, the key's words. */
struct sorted_word {
	bool is_value; /* a number, the larger first; otherwise bytes of a key, as memcmp() compares them */
	size_t offset;
};

static struct sorted_word sorted_word(size_t i)
{
	return i > 1 ? (struct sorted_word){false, (i - 2) * sizeof(__u64)}
	       : i   ? (struct sorted_word){true, offsetof(struct value_head, samples)}
		     : (struct sorted_word){true, offsetof(struct value_head, period)};
}

static const char *bytes_at(const struct entry *entry, struct sorted_word word)
{
	return (word.is_value ? (const char *)entry->values : entry->key) + word.offset;
}

/* The first byte of a word, in the order of its bytes, in which entries differ; -1: they are the same. */
static int first_difference(const struct entry *entries, size_t nr, struct sorted_word word)
{
	__u64 first = *(const __u64 *)bytes_at(&entries[0], word), differs = 0;

	for (size_t i = 1; i < nr; i++)
		differs |= *(const __u64 *)bytes_at(&entries[i], word) ^ first;
	if (!differs)
		return -1;
	return (word.is_value ? 63 - __builtin_clzll(differs) : __builtin_ctzll(differs)) / 8;
}

/* Puts entries into groups by a byte. ends[i] is where the i-th group ends. `other` has room for as many. */
static void group(struct entry *entries, struct entry *other, size_t nr, struct sorted_word word, int byte,
		  __u32 ends[256])
{
	unsigned char flipped = word.is_value ? 255 : 0;

	memset(ends, 0, 256 * sizeof(*ends));
	memcpy(other, entries, nr * sizeof(*other));
	for (size_t i = 0; i < nr; i++)
		ends[(unsigned char)bytes_at(&other[i], word)[byte] ^ flipped]++;
	for (__u32 i = 0, at = 0; i < 256; i++) {
		__u32 count = ends[i];

		ends[i] = at;
		at += count;
	}
	for (size_t i = 0; i < nr; i++)
		entries[ends[(unsigned char)bytes_at(&other[i], word)[byte] ^ flipped]++] = other[i];
}

/* Sorts entries whose words before the i-th are the same. */
static void sort_from(struct entry *entries, struct entry *other, size_t nr, size_t key_size, size_t i)
{
	__u32 ends[256];
	int byte = -1;

	if (nr < GROUPED_FROM) {
		sort_few(entries, nr, key_size);
		return;
	}
	for (; i < 2 + key_size / sizeof(__u64); i++)
		if ((byte = first_difference(entries, nr, sorted_word(i))) >= 0)
			break;
	if (byte < 0)
		return;
	group(entries, other, nr, sorted_word(i), byte, ends);
	for (size_t g = 0, at = 0; g < 256; at = ends[g++])
		if (ends[g] - at > 1)
			sort_from(entries + at, other, ends[g] - at, key_size, i);
}

/* To sort ten thousand entries by comparing them with each other would cost more than to write them. */
void entries_sort(const struct layout *layout, struct entry *entries, size_t nr)
{
	struct entry *other = xmalloc(nr * sizeof(*other));

	sort_from(entries, other, nr, layout->key_size, 0);
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
