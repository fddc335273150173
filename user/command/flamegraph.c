// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap flamegraph: the stacks of a stream of records, read from stdin, as one page that draws them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "option/command.h"
#include "output/flamegraph.h"
#include "output/progress.h"
#include "output/sink.h"
#include "record/stored_lines.h"

static int refuse_line(size_t line, const char *why, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "line %zu of stdin", line);
	because(refusal, "it is no record: %.200s", why);
	return instead(refusal, "give it what nhmtap profile -g --format json writes");
}

static int refuse_input(int err, struct refusal *refusal)
{
	refuse(refusal, STATUS_PARTIAL, "reading the records");
	return because(refusal, "%s", strerror(-err));
}

/* What was profiled, by the start record: a program's name, or "processes", or "CPUs". */
static void take_title(char *title, size_t size, const json_t *start)
{
	const json_t *target = json_object_get(start, "target");
	const json_t *arguments = json_object_get(target, "process.command_args");
	const char *program = json_string_value(json_array_get(arguments, 0));
	const char *slash = program ? strrchr(program, '/') : NULL;
	const char *cpus = json_string_value(json_object_get(target, "cpus"));

	if (program)
		snprintf(title, size, "Flame graph of %.80s", slash ? slash + 1 : program);
	else if (cpus)
		snprintf(title, size, "Flame graph of CPUs %.80s", cpus);
}

static int read_records(struct flamegraph *flamegraph, char *title, size_t size, struct refusal *refusal)
{
	struct stored_lines lines;
	const char *line;
	size_t number = 0;
	ssize_t length;
	bool whole;
	int err = 0;

	stored_lines_open(&lines, STDIN_FILENO);
	while (!err && (length = stored_lines_next(&lines, &line, &whole)) > 0) {
		json_error_t error = {.text = "it is too long"};
		json_t *record = whole ? json_loadb(line, length, 0, &error) : NULL;

		number++;
		if (progress_due())
			progress_show_read(STDIN_FILENO, lines.read);
		if (!record)
			err = refuse_line(number, error.text, refusal);
		else if (!*title)
			take_title(title, size, record);
		flamegraph_take(flamegraph, record);
		json_decref(record);
	}
	stored_lines_close(&lines);
	return err || length >= 0 ? err : refuse_input(length, refusal);
}

static int write_page(const struct flamegraph *flamegraph, const char *title, const char *path,
		      struct refusal *refusal)
{
	struct text page = {0};
	struct sink sink;

	if (sink_open(&sink, path, false, refusal))
		return -1;
	flamegraph_page(flamegraph, title, &page);
	sink_put(&sink, page.bytes, page.used);
	free(page.bytes);
	return sink_close(&sink) ? sink_refusal(&sink, refusal) : 0;
}

static int draw(struct flamegraph *flamegraph, const struct options *options, struct refusal *refusal)
{
	char title[128] = "";
	int err;

	if (isatty(STDIN_FILENO) || options->nr_rest) {
		refuse(refusal, STATUS_USAGE, "flamegraph");
		because(refusal, "it reads records from stdin");
		return instead(refusal, "nhmtap flamegraph < records.jsonl > flame.html");
	}
	progress_begin(options->quiet);
	err = read_records(flamegraph, title, sizeof(title), refusal);
	progress_end();
	if (err)
		return -1;
	if (!flamegraph_events(flamegraph)) {
		refuse(refusal, STATUS_USAGE, "flamegraph");
		because(refusal, "there are no stacks in these records");
		return instead(refusal, "record them with nhmtap profile -g");
	}
	return write_page(flamegraph, *title ? title : "Flame graph", options->output, refusal);
}

static int run(const struct options *options, struct refusal *refusal)
{
	struct flamegraph *flamegraph = flamegraph_new();
	int err = draw(flamegraph, options, refusal);

	flamegraph_release(flamegraph);
	return err ? (int)refusal->status : STATUS_DONE;
}

static const struct command flamegraph_command = {
	.name = "flamegraph",
	.arguments = "[OPTIONS] < RECORDS",
	.help = "draws the stacks of a stream of records: one page, for any browser",
	.options = {output_rows, quiet_rows, help_rows},
	.run = run,
};
REGISTER_COMMAND(flamegraph_command);
