// SPDX-License-Identifier: GPL-2.0-only
#include "record/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct compact *rows_begin(struct rows *rows)
{
	rows->begun = rows->text.used;
	return &rows->text;
}

/* The last element's comma is cut off at the end of the list. */
void rows_end(struct rows *rows)
{
	compact_close(&rows->text, rows->begun);
	rows->sizes = xroom(rows->sizes, rows->nr, &rows->room, sizeof(*rows->sizes));
	rows->sizes[rows->nr++] = rows->text.used - rows->begun;
	*compact_reserve(&rows->text, 1) = ',';
	rows->text.used++;
}

void rows_release(struct rows *rows)
{
	free(rows->sizes);
	free(rows->text.text);
	*rows = (struct rows){0};
}

void rows_put(struct rows *rows, json_t *record, const char *name)
{
	size_t size = rows->text.used - !!rows->nr, head = sizeof(__u64) + rows->nr * sizeof(*rows->sizes);
	char *all = xmalloc(head + size);

	*(__u64 *)all = rows->nr;
	if (rows->nr) {
		memcpy(all + sizeof(__u64), rows->sizes, rows->nr * sizeof(*rows->sizes));
		memcpy(all + head, rows->text.text, size);
	}
	rows_release(rows);
	json_object_set_new(record, name, json_stringn_nocheck(all, head + size));
	free(all);
}

bool rows_text(const json_t *value, struct rows_text *rows)
{
	const char *all = json_string_value(value);
	size_t head;

	if (!all)
		return false;
	rows->nr = *(const __u64 *)all;
	head = sizeof(__u64) + rows->nr * sizeof(*rows->sizes);
	rows->sizes = (const __u32 *)(all + sizeof(__u64));
	rows->text = all + head;
	rows->size = json_string_length(value) - head;
	return true;
}

void rows_open(json_t *record, const char *name)
{
	struct rows_text rows;
	struct compact list = {0};

	if (!rows_text(json_object_get(record, name), &rows))
		return;
	compact_add(&list, "[", 1);
	compact_add(&list, rows.text, rows.size);
	compact_add(&list, "]", 1);
	json_object_set_new(record, name, had(json_loadb(list.text, list.used, 0, NULL)));
	free(list.text);
}
