// SPDX-License-Identifier: GPL-2.0-only
/*
 * A line for each stack, as Brendan Gregg's stackcollapse-perf.pl writes it and flamegraph.pl reads it: the
 * owner, the functions from the outermost to the innermost, and the periods of the samples, as newer versions
 * of that script take them from perf script: with a frequency, samples stand for unequal numbers of events. A
 * stack has one line in each interval. A branch is appended to the stack of the sample that it came with.
 *
 *     demo;main;work;step 1203
 *     demo;main;read;entry_SYSCALL_64_[k];vfs_read_[k] 17
 *     # lost samples: 20 of 1,240 expected samples are missing: table_full 0
 */
#include <stdlib.h>
#include <string.h>

#include "output/profiles.h"
#include "output/remarks.h"
#include "output/text.h"

static void add_step(void *of, const struct step *step)
{
	struct text *text = of;

	calls_fold(text, step->name,
		   !step->call				? ""
		   : calls_of_kernel(step->call->frame) ? "_[k]"
		   : step->call->inlined		? "_[i]"
							: "");
}

/* Adds to the weight of this line. */
static void add_line(json_t *lines, const char *line, json_int_t weight)
{
	weight += json_integer_value(json_object_get(lines, line));
	json_object_set_new(lines, line, json_integer(weight));
}

static void add_entry(json_t *lines, const struct calls *calls, const json_t *entry)
{
	struct text line = {0};

	calls_walk(calls, entry, add_step, &line);
	add_line(lines, line.bytes, calls_weight(entry));
	free(line.bytes);
}

/* A remark is a line with no weight, which readers of such lines take: some of them know no comments. */
static void add_remark(void *to, const struct remark *remark)
{
	struct text *text = to;
	size_t at = text->used;

	if (!remark->serious)
		return;
	text_add(text, "# %s: %s 0\n", remark->title, remark->text);
	for (; at < text->used; at++)
		if (text->bytes[at] == ';')
			text->bytes[at] = ',';
}

static int write_folded(struct stream *stream, const json_t *record)
{
	const json_t *rest = json_object_get(record, "rest");
	json_t *lines = json_object(), *entry, *weight;
	struct text text = {0};
	const char *line;
	int err = 0;
	size_t i;

	json_array_foreach(json_object_get(record, "entries"), i, entry)
		add_entry(lines, &stream->calls, entry);
	if (rest)
		add_line(lines, "[others]", calls_weight(rest));
	json_object_foreach(lines, line, weight)
		text_add(&text, "%s %lld\n", line, (long long)json_integer_value(weight));
	json_decref(lines);
	if (text.used) {
		remarks_of(record, add_remark, &text);
		err = sink_put(&stream->sink, text.bytes, text.used);
	}
	free(text.bytes);
	return err;
}

static const struct format folded = {
	.name = "folded",
	.help = "one line per stack, for flamegraph.pl; implies -g",
	.adds_up = true,
	.commands = COMMANDS_OF_STACKS,
	.keys = "stack",
	.one_event = true,
	.media = "text/plain; charset=utf-8",
	.halve = lines_halve,
	.check = profile_check_events,
	.write = write_folded,
};
REGISTER_FORMAT(folded);
