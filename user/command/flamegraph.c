// SPDX-License-Identifier: GPL-2.0-only
/*
 * nhmtap flamegraph: one page that draws the stacks of a stream of records, or the difference of two streams.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "base/visible.h"
#include "option/command.h"
#include "output/flamegraph.h"
#include "output/member.h"
#include "output/progress.h"
#include "output/scribe_server.h"
#include "output/sink.h"
#include "view/reading.h"

struct flamegraph_options {
	const char *title;
	bool reverse;
	double from_s, to_s; /* --from and --to in s; 0 if not given */
};

struct heading {
	char title[256];
	char emulated[80]; /* what is added of the machine */
	struct stored_end end;
};

/* Notes the emulated machine that the records are from, for the heading. */
static void take_emulated(struct heading *heading, const json_t *start)
{
	const json_t *emulated = emulated_host(start);

	if (emulated)
		snprintf(heading->emulated, sizeof(heading->emulated), " (emulated machine: %.40s)",
			 string(emulated, "model"));
}

/* Makes the title from the target in the start record: a program's name or a list of CPUs. For other targets
 * the title is not changed. */
static void take_title(char *title, size_t size, const json_t *start)
{
	const json_t *target = json_object_get(start, "target");
	const char *program = measured_program(start);
	const char *cpus = json_string_value(json_object_get(target, "cpus"));

	if (program)
		snprintf(title, size, "Flame graph of %.80s", path_last(program));
	else if (cpus)
		snprintf(title, size, "Flame graph of CPUs %.80s", cpus);
}

struct drawing {
	struct flamegraph *flamegraph;
	struct heading heading;
};

static void take_drawn(void *of, const json_t *record)
{
	struct drawing *drawing = of;

	if (!*drawing->heading.title)
		take_title(drawing->heading.title, sizeof(drawing->heading.title), record);
	take_emulated(&drawing->heading, record);
	flamegraph_take(drawing->flamegraph, record);
}

/* Takes in all records of a file; file is NULL for stdin. */
static int read_records(struct flamegraph *flamegraph, const char *file, struct heading *heading,
			struct refusal *refusal)
{
	struct drawing drawing = {flamegraph, *heading};
	struct stored_reading reading = {.writer = "nhmtap profile -g", .take = take_drawn, .of = &drawing};
	int err = read_stored(&reading, file, refusal);

	*heading = drawing.heading;
	heading->end = reading.end;
	if (!err && flamegraph_events(flamegraph))
		stored_tell_early_end(&reading.end, file);
	return err;
}

static int write_page(struct flamegraph *flamegraph, const char *title, const char *path,
		      struct refusal *refusal)
{
	struct text page = {0};
	struct sink sink;

	if (sink_open(&sink, path, false, false, scribe_serve, refusal))
		return -1;
	flamegraph_page(flamegraph, title, &page);
	sink_put(&sink, page.bytes, page.used);
	free(page.bytes);
	return sink_close(&sink) ? sink_refusal(&sink, refusal) : 0;
}

static int refuse_empty(const struct flamegraph *flamegraph, const struct heading *heading,
			struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "flamegraph");
	if (flamegraph_left_out(flamegraph)) {
		because(refusal, "none of the %zu intervals begins in this part of the time",
			flamegraph_left_out(flamegraph));
		return instead(refusal, "record shorter ones: nhmtap profile -g -I MS");
	}
	stored_has_no("no stacks", &heading->end, refusal);
	return instead(refusal, "record them with nhmtap profile -g");
}

static int read_streams(struct flamegraph *flamegraph, const struct options *options, struct heading *heading,
			struct refusal *refusal)
{
	struct heading second = {.title = "-"};
	size_t used;

	if (read_records(flamegraph, options->nr_rest ? options->rest[0] : NULL, heading, refusal))
		return -1;
	if (options->nr_rest < 2)
		return 0;
	if (!flamegraph_events(flamegraph))
		return refuse_empty(flamegraph, heading, refusal);
	flamegraph_second(flamegraph);
	if (read_records(flamegraph, options->rest[1], &second, refusal))
		return -1;
	if (*second.emulated)
		memcpy(heading->emulated, second.emulated, sizeof(second.emulated));
	used = strlen(heading->title);
	snprintf(heading->title + used, sizeof(heading->title) - used, "%s: %.40s against %.40s",
		 used ? "" : "Flame graph", path_last(options->rest[1]), path_last(options->rest[0]));
	return 0;
}

static int draw(struct flamegraph *flamegraph, const struct options *options, struct refusal *refusal)
{
	const struct flamegraph_options *own = options->own;
	struct heading heading = {.title = ""};
	char *title;
	int err;

	if (options->nr_rest > 2 || (!options->nr_rest && isatty(STDIN_FILENO))) {
		refuse(refusal, STATUS_USAGE, "flamegraph");
		because(refusal, "it reads the records of one file or of two, or from stdin");
		return instead(refusal, "nhmtap flamegraph < records.jsonl > flame.html");
	}
	if (check_not_read(options->output, options->rest, options->nr_rest, refusal))
		return -1;
	if (own->to_s && own->to_s <= own->from_s) {
		refuse(refusal, STATUS_USAGE, "options --from %g --to %g", own->from_s, own->to_s);
		because(refusal, "there is no time between them");
		return instead(refusal, "both are seconds since the first interval began");
	}
	if (own->reverse)
		flamegraph_reverse(flamegraph);
	flamegraph_part(flamegraph, own->from_s, own->to_s ? own->to_s : INFINITY);
	progress_begin(options->quiet);
	err = read_streams(flamegraph, options, &heading, refusal);
	progress_end();
	if (err)
		return -1;
	if (!flamegraph_events(flamegraph))
		return refuse_empty(flamegraph, &heading, refusal);
	if (own->title)
		snprintf(heading.title, sizeof(heading.title), "%.250s", own->title);
	title = xasprintf("%s%s", *heading.title ? heading.title : "Flame graph", heading.emulated);
	err = write_page(flamegraph, title, options->output, refusal);
	free(title);
	return err;
}

static int run(const struct options *options, struct refusal *refusal)
{
	struct flamegraph *flamegraph = flamegraph_new();
	int err = draw(flamegraph, options, refusal);

	flamegraph_release(flamegraph);
	return err ? (int)refusal->status : STATUS_DONE;
}

static const struct option_row rows[] = {
	{0, "title", "TEXT", OPTION_TEXT, OWN(struct flamegraph_options, title),
	 .help = "the page's heading"},
	{0, "reverse", NULL, OPTION_FLAG, OWN(struct flamegraph_options, reverse),
	 .help = "draw each function above its callers, innermost first"},
	{0, "from", "S", OPTION_SECONDS, OWN(struct flamegraph_options, from_s),
	 .help = "only intervals that begin S seconds after the first, or later"},
	{0, "to", "S", OPTION_SECONDS, OWN(struct flamegraph_options, to_s),
	 .help = "only intervals that begin earlier than that"},
	{0},
};

static const struct command flamegraph_command = {
	.name = "flamegraph",
	.arguments = "[OPTIONS] [A [B]] < RECORDS",
	.help = "draws a flame graph of stored records, or of how B differs from A, as one HTML page",
	.options = {rows, output_rows, quiet_rows, help_rows},
	.own_size = sizeof(struct flamegraph_options),
	.run = run,
};
REGISTER_COMMAND(flamegraph_command);
