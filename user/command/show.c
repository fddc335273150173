// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap show: tables of a stored stream of records for people, or of how two streams differ. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "annotate/annotation.h"
#include "base/memory.h"
#include "base/number.h"
#include "option/command.h"
#include "output/activities.h"
#include "output/hints.h"
#include "output/member.h"
#include "output/progress.h"
#include "output/rows.h"
#include "output/text.h"
#include "view/figures.h"
#include "view/heading.h"
#include "view/pager.h"
#include "view/reading.h"
#include "view/shares.h"

struct show_options {
	const char *by, *sort, *callers, *callees, *percent_limit, *annotate;
	struct texts filter;
	bool children, diff;
};

struct showing {
	struct share_tables *shares;
	struct figures *figures;
	struct heading_of_stream headings[2];
	struct sharing sharing; /* of the first stream */
	int stream;
	const char *annotate; /* the function; NULL: none was asked for */
	struct activities activities;
	json_t *sampled; /* then, per event and activity: a record with the entries of all of its records */
};

static bool has_place(const json_t *entry)
{
	const json_t *code = json_object_get(entry, "code");

	return json_object_get(code, "offset") || json_object_get(code, "address");
}

static void keep_entries(struct showing *showing, const json_t *record)
{
	char *event = row_title(record, string(record, "event")), *key;
	json_t *of_event, *entry;
	size_t i;

	key = xasprintf("%s\n%s\n%s", string(record, "type"), event,
			measurement_in(&showing->activities, event, record)->activity);
	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		if (!has_place(entry))
			continue;
		of_event = json_object_get(showing->sampled, key);
		if (!of_event) {
			of_event = json_copy((json_t *)record);
			json_object_set_new(of_event, "entries", json_array());
			json_object_set_new(of_event, "event", json_string(event));
			json_object_set_new(showing->sampled, key, of_event);
		}
		json_array_append(json_object_get(of_event, "entries"), entry);
	}
	free(event);
	free(key);
}

static void take_record(void *of, const json_t *record)
{
	struct showing *showing = of;

	heading_take(&showing->headings[showing->stream], record);
	shares_take(showing->shares, record);
	if (!showing->stream)
		sharing_take(&showing->sharing, record);
	figures_take(showing->figures, record);
	if (showing->annotate)
		keep_entries(showing, record);
}

static int read_stream(struct showing *showing, const char *file, struct refusal *refusal)
{
	struct stored_reading reading = {.writer = "nhmtap", .take = take_record, .of = showing};
	int err = read_stored(&reading, file, refusal);

	showing->headings[showing->stream].end = reading.end;
	return err;
}

static int read_streams(struct showing *showing, const struct options *options, struct refusal *refusal)
{
	const struct show_options *own = options->own;

	if (read_stream(showing, options->nr_rest ? options->rest[0] : NULL, refusal))
		return -1;
	if (!own->diff)
		return 0;
	showing->stream = 1;
	shares_second(showing->shares);
	figures_second(showing->figures);
	return read_stream(showing, options->rest[1], refusal);
}

static int refuse_empty(const struct showing *showing, const struct show_options *own,
			struct refusal *refusal)
{
	const struct stored_end *end = &showing->headings[0].end;

	refuse(refusal, STATUS_USAGE, "show");
	if (own->filter.nr) {
		because(refusal, "no counts pass the filter, and there are no samples in these records");
		return instead(refusal, "without --filter it shows what there is");
	}
	if (showing->stream && !*end->error && !*stored_early_end(end))
		end = &showing->headings[1].end;
	return stored_has_nothing(end, refusal);
}

static void add_hint(struct text *text, const struct showing *showing, const struct options *options)
{
	const struct show_options *own = options->own;
	bool of_stacks = own->children || own->callers || own->callees;

	if (text->width && !options->quiet)
		hint_add(text, own->diff ? "show --diff" : "show",
			 of_stacks ? NULL : showing->headings[0].start, &showing->sharing);
}

static int print_tables(const struct showing *showing, const struct options *options, struct refusal *refusal)
{
	const struct show_options *own = options->own;
	struct text text = show_begin(options->output), tables = text;
	int err;

	if (!shares_tables(showing->shares) && !figures_number(showing->figures))
		return refuse_empty(showing, own, refusal);
	if (shares_check(showing->shares, refusal))
		return -1;
	for (int i = 0; i <= showing->stream; i++)
		heading_print(&showing->headings[i], &text);
	shares_print(showing->shares, &tables, tables.width);
	figures_print(showing->figures, own->diff, &tables, tables.width);
	text_add(&text, "\n%s", tables.bytes ?: "");
	add_hint(&text, showing, options);
	err = show_text(&text, options->output, refusal);
	free(text.bytes);
	free(tables.bytes);
	return err;
}

/* The code of a function by the samples that are stored. Programs and sources are read where the records say.
 */
static int print_code(struct showing *showing, const struct options *options, struct refusal *refusal)
{
	struct annotator *annotator = annotator_new();
	json_t *record, *annotations, *one;
	struct text text = show_begin(options->output);
	const char *key;
	size_t i;
	int err;

	json_object_foreach(showing->sampled, key, record) {
		char *title = measurement_title(
			&showing->activities,
			measurement_in(&showing->activities, string(record, "event"), record));

		json_object_set_new(record, "event", json_string(title));
		free(title);
		annotations = annotate(annotator, showing->annotate, record);
		json_array_foreach(annotations, i, one)
			annotation_print(&text, one);
		json_decref(annotations);
	}
	annotator_release(annotator);
	if (text.used) {
		err = show_text(&text, options->output, refusal);
		free(text.bytes);
		return err;
	}
	refuse(refusal, STATUS_USAGE, "option --annotate '%.200s'", showing->annotate);
	because(refusal, "there are no samples of places in the code in these records");
	return instead(refusal, "nhmtap profile --by place -o FILE -- COMMAND stores them");
}

/* --- the command line ------------------------------------------------------------------------- */

static int refuse_files(const struct show_options *own, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "show");
	because(refusal, own->diff ? "--diff compares the records of two files"
				   : "it reads the records of one file, or from stdin");
	return instead(refusal, own->diff ? "nhmtap show --diff A B" : "nhmtap show FILE");
}

static int check_options(const struct options *options, struct refusal *refusal)
{
	const struct show_options *own = options->own;
	bool ways = own->callers || own->callees;

	if (own->annotate && (own->diff || ways || own->by || own->children || own->filter.nr)) {
		refuse(refusal, STATUS_USAGE, "option --annotate with --%s",
		       own->diff       ? "diff"
		       : own->callers  ? "callers"
		       : own->callees  ? "callees"
		       : own->by       ? "by"
		       : own->children ? "children"
				       : "filter");
		because(refusal, "code is shown by all samples of a function in one file");
		return instead(refusal, "give --annotate alone");
	}
	if (own->diff ? options->nr_rest != 2
		      : options->nr_rest > 1 || (!options->nr_rest && isatty(STDIN_FILENO)))
		return refuse_files(own, refusal);
	if (check_not_read(options->output, options->rest, options->nr_rest, refusal))
		return -1;
	if ((own->callers && own->callees) || (ways && (own->by || own->children || own->diff))) {
		refuse(refusal, STATUS_USAGE, "option --%s with --%s", own->callers ? "callers" : "callees",
		       own->callees && own->callers ? "callees"
		       : own->diff		    ? "diff"
		       : own->children		    ? "children"
						    : "by");
		because(refusal, "callers and callees are a table of their own");
		return instead(refusal, "give one of these options");
	}
	return 0;
}

static int take_percent(const char *given, double *least, struct refusal *refusal)
{
	const char *end;

	*least = -1;
	if (!given)
		return 0;
	if (number_decimal(given, least, &end) && (!*end || !strcmp(end, "%")) && *least <= 100)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --percent-limit '%.100s'", given);
	because(refusal, "it is no number from 0 to 100");
	return instead(refusal, "--percent-limit 0.5");
}

static int show_all(const struct options *options, const struct shares_wanted *wanted,
		    struct refusal *refusal)
{
	const struct show_options *own = options->own;
	struct showing showing = {.shares = shares_new(wanted),
				  .figures = figures_new(wanted->filter),
				  .annotate = own->annotate,
				  .sampled = json_object()};
	int err;

	activities_begin(&showing.activities);
	for (int i = 0; i < 2; i++)
		heading_begin(&showing.headings[i], own->diff ? options->rest[i] : NULL);
	progress_begin(options->quiet);
	err = read_streams(&showing, options, refusal);
	progress_end();
	if (!err)
		err = own->annotate ? print_code(&showing, options, refusal)
				    : print_tables(&showing, options, refusal);
	json_decref(showing.sampled);
	activities_release(&showing.activities);
	for (int i = 0; i < 2; i++)
		heading_release(&showing.headings[i]);
	shares_release(showing.shares);
	figures_release(showing.figures);
	return err;
}

static int run(const struct options *options, struct refusal *refusal)
{
	const struct show_options *own = options->own;
	struct row_filter filter = {0};
	struct shares_wanted wanted = {
		.by = own->by,
		.sort = own->sort,
		.filter = &filter,
		.callers = own->callers,
		.callees = own->callees,
		.children = own->children,
		.diff = own->diff,
		.top = options->top,
	};
	int err = check_options(options, refusal) ||
		  take_percent(own->percent_limit, &wanted.least, refusal) ||
		  row_filter_parse(&filter, &own->filter, refusal) || show_all(options, &wanted, refusal);

	row_filter_release(&filter);
	return err ? (int)refusal->status : STATUS_DONE;
}

static const char *const show_keys[] = {"comm",	       "symbol",
					"module",      "line",
					"place",       "code",
					"pid",	       "tid",
					"cpu",	       "cgroup",
					"source",      "cacheline",
					"page",	       "node",
					"tlb",	       "lock",
					"ip",	       "from",
					"to",	       "event",
					"variable",    "variable_offset",
					"data_module", "data_type",
					"field",       "untyped",
					NULL};
static const char *const show_orders[] = {"share", "samples", "self",	"total", "mean",
					  "max",   "change",  "symbol", "comm",	 NULL};

static const struct option_row rows[] = {
	{0, "by", "KEYS", OPTION_LIST, OWN(struct show_options, by), .words = show_keys,
	 .help = "keys to sum up by: those that the records have, or of their code symbol, module, line, "
		 "place (default: all that the records have)"},
	{0, "sort", "ORDER", OPTION_TEXT, OWN(struct show_options, sort), .words = show_orders,
	 .help = "order of the rows: share, samples, total, mean, max, mispredicted, change, or a key "
		 "(default: share; "
		 "with --diff change)"},
	{0, "filter", "KEY=TEXT,…", OPTION_TEXTS, OWN(struct show_options, filter),
	 .help = "show only rows that meet all conditions: KEY=TEXT, KEY!=TEXT, KEY~REGEX or KEY!~REGEX"},
	{0, "percent-limit", "P", OPTION_TEXT, OWN(struct show_options, percent_limit),
	 .help = "sum up rows with less than P percent (default 0; for callers and callees 0.5)"},
	{0, "children", NULL, OPTION_FLAG, OWN(struct show_options, children),
	 .help = "with stacks: each function's share including what it calls, beside its own share"},
	{0, "callers", "FUNCTION", OPTION_TEXT, OWN(struct show_options, callers), .again = AGAIN_REFUSED,
	 .help = "with stacks: who calls FUNCTION"},
	{0, "callees", "FUNCTION", OPTION_TEXT, OWN(struct show_options, callees), .again = AGAIN_REFUSED,
	 .help = "with stacks: what FUNCTION calls"},
	{0, "annotate", "FUNCTION", OPTION_TEXT, OWN(struct show_options, annotate), .again = AGAIN_REFUSED,
	 .help = "with samples --by place: the instructions and source lines of FUNCTION, with its samples"},
	{0, "diff", NULL, OPTION_FLAG, OWN(struct show_options, diff),
	 .help = "show how the records of a second file differ from those of the first"},
	{0},
};

static const struct command show_command = {
	.name = "show",
	.arguments = "[OPTIONS] [FILE]",
	.help = "shows stored records as tables, sorted, filtered and compared",
	.options = {rows, top_rows, output_rows, quiet_rows, help_rows},
	.own_size = sizeof(struct show_options),
	.run = run,
};
REGISTER_COMMAND(show_command);
