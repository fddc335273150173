// SPDX-License-Identifier: GPL-2.0-only
/*
 * A line a stack, as Brendan Gregg's stackcollapse-perf.pl writes it and flamegraph.pl reads it: who ran,
 * the functions from the outermost to the innermost, and the samples.
 *
 *     demo;main;work;step 1203
 *     demo;main;read;entry_SYSCALL_64_[k];vfs_read_[k] 17
 */
#include <stdlib.h>
#include <string.h>

#include "output/calls.h"
#include "output/output.h"
#include "output/text.h"

static void add_frame(struct text *text, const json_t *frame)
{
	char name[CALLS_NAME_MAX];

	for (size_t i = calls_in(frame); i--;) {
		struct call call = calls_at(frame, i);

		text_add(text, ";%s%s", calls_name(&call, name, sizeof(name)),
			 calls_of_kernel(frame) ? "_[k]" : call.inlined ? "_[i]" : "");
	}
}

static void add_entry(struct text *text, const struct calls *calls, const json_t *entry)
{
	const json_t *stack = json_object_get(entry, "stack");
	const char *lost = json_string_value(json_object_get(entry, "stack_lost"));
	char owner[CALLS_NAME_MAX];

	text_add(text, "%s", calls_owner(entry, owner, sizeof(owner)));
	if (lost)
		text_add(text, ";[stack lost: %s]", lost);
	for (size_t i = json_array_size(stack); i--;)
		add_frame(text, calls_frame(calls, json_integer_value(json_array_get(stack, i))));
	text_add(text, " %lld\n", (long long)json_integer_value(json_object_get(entry, "samples")));
}

int output_folded(struct stream *stream, const json_t *record)
{
	const json_t *rest = json_object_get(record, "rest");
	struct text text = {0};
	json_t *entry;
	int err = 0;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry)
		add_entry(&text, &stream->calls, entry);
	if (rest)
		text_add(&text, "[others] %lld\n",
			 (long long)json_integer_value(json_object_get(rest, "samples")));
	if (text.used)
		err = sink_put(&stream->sink, text.bytes, text.used);
	free(text.bytes);
	return err;
}
