// SPDX-License-Identifier: GPL-2.0-only
/* The table of an annotation: source lines, and below them instructions, each with its samples. */
#include <string.h>

#include "annotate/annotation.h"
#include "base/path.h"
#include "output/rows.h"
#include "output/table.h"

static void add_sources(struct text *text, const json_t *sources)
{
	const char *name, *between = "  ";
	json_t *samples;

	json_object_foreach((json_t *)sources, name, samples) {
		text_add(text, "%s%s %lld", between, name, (long long)json_integer_value(samples));
		between = ", ";
	}
}

/* The indentation of a source is tabs, which a cell would show as what they are. */
static void add_source_text(struct text *text, const char *source)
{
	char cell[512];
	json_t *rest;

	text_add(text, "  ");
	for (; *source == '\t' || *source == ' '; source++)
		text_add(text, *source == '\t' ? "    " : " ");
	rest = json_string(source);
	row_cell(rest, cell, sizeof(cell));
	text_add(text, "%s", cell);
	json_decref(rest);
}

static void add_line(struct text *text, const json_t *instruction)
{
	char cell[512];

	row_cell(json_object_get(instruction, "file"), cell, sizeof(cell));
	text_add(text, "%28s%s:%lld", "", path_last(cell), (long long)integer(instruction, "line"));
	if (json_object_get(instruction, "source"))
		add_source_text(text, string(instruction, "source"));
	text_add(text, "\n");
}

static void add_instruction(struct text *text, const json_t *instruction, json_int_t whole, bool latency)
{
	json_int_t samples = integer(instruction, "samples");
	char cell[256] = "";

	if (samples)
		text_add(text, "%8lld %6.2f%%", (long long)samples,
			 row_share(integer(instruction, "period"), whole));
	else
		text_add(text, "%8s %7s", "", "");
	if (latency && json_object_get(instruction, "latency_mean"))
		text_add(text, " %6.0f", real_member(instruction, "latency_mean", 0));
	else if (latency)
		text_add(text, " %6s", "");
	if (json_object_get(instruction, "instruction"))
		row_cell(json_object_get(instruction, "instruction"), cell, sizeof(cell));
	text_add(text, " %10s:  %s", string(instruction, "offset"), cell);
	add_sources(text, json_object_get(instruction, "sources"));
	text_add(text, "\n");
}

static bool is_same_line(const json_t *one, const json_t *other)
{
	return other && integer(one, "line") == integer(other, "line") &&
	       !strcmp(string(one, "file"), string(other, "file"));
}

static bool has_latency(const json_t *instructions)
{
	json_t *one;
	size_t i;

	json_array_foreach(instructions, i, one)
		if (json_object_get(one, "latency_mean"))
			return true;
	return false;
}

void annotation_print(struct text *text, const json_t *record)
{
	const json_t *instructions = json_object_get(record, "instructions"), *before = NULL;
	const char *counted = json_object_get(record, "branches") ? "branches" : "samples";
	bool latency = has_latency(instructions);
	char cell[512];
	json_t *one;
	size_t i;

	row_cell(json_object_get(record, "function"), cell, sizeof(cell));
	text_add(text, "%s", cell);
	if (json_object_get(record, "module")) {
		row_cell(json_object_get(record, "module"), cell, sizeof(cell));
		text_add(text, " of %s: %lld %s, %.1f%% of ", cell, (long long)integer(record, "sampled"),
			 counted, 100 * real_member(record, "share", 0));
		row_cell(json_object_get(record, "event"), cell, sizeof(cell));
		text_add(text, "%s", cell);
	}
	text_add(text, "\n");
	json_array_foreach(json_object_get(record, "why"), i, one) {
		row_cell(one, cell, sizeof(cell));
		text_add(text, "# %s\n", cell);
	}
	if (json_array_size(instructions))
		text_add(text, "%8s   share%s     offset\n", counted, latency ? "  mean" : "");
	json_array_foreach(instructions, i, one) {
		if (json_object_get(one, "line") && !is_same_line(one, before))
			add_line(text, one);
		add_instruction(text, one, integer(record, "period"), latency);
		before = one;
	}
	text_add(text, "\n");
}

static void annotation_table(struct text *text, const struct stream *stream, const json_t *record)
{
	row_time(text, stream, record);
	annotation_print(text, record);
}

REGISTER_TABLE(annotation, annotation_table);
