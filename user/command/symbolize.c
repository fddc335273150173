// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap symbolize [FILE]: copies a stored stream of records, and adds names to code. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/piped.h"
#include "base/visible.h"
#include "naming/naming.h"
#include "option/command.h"
#include "output/progress.h"
#include "output/restream.h"
#include "output/scribe_server.h"
#include "record/compact.h"
#include "record/stored_code.h"
#include "record/stored_lines.h"
#include "view/reading.h"

/* symbolize's own options; NULL where not given. */
struct symbolize_options {
	const char *symfs; /* --symfs: root below which files are looked for */
	const char *debug_dir, *kallsyms;
};

struct symbolizing {
	const struct options *options;
	struct piped input;
	struct sink sink;
	struct restream restream;
	struct naming *naming;
	struct stored_account account;
	char boot_id[64];
	json_t *kernels; /* {run_id: true} of the runs on the kernel that runs now */
	size_t foreign;	 /* number of lines that are no records */
	size_t newer;	 /* number of records of a newer major version */
};

/* --- which kernel --------------------------------------------------------------------------------- */

/* Addresses of the kernel are different after each boot, so its symbols are used only for runs since this
 * boot. */
static void note_boot(struct symbolizing *symbolizing, const json_t *start)
{
	const char *id = json_string_value(json_object_get(start, "run_id"));
	const char *boot = json_string_value(json_object_get(json_object_get(start, "host"), "boot_id"));

	if (boot && id && !strcmp(boot, symbolizing->boot_id))
		json_object_set_new(symbolizing->kernels, id, json_true());
}

static bool knows_kernel(const struct symbolizing *symbolizing, const json_t *record)
{
	const char *id = json_string_value(json_object_get(record, "run_id"));

	return ((const struct symbolize_options *)symbolizing->options->own)->kallsyms ||
	       (id && json_object_get(symbolizing->kernels, id));
}

/* --- lines ---------------------------------------------------------------------------------------- */

static bool add_names(void *of, const json_t *record, json_t *list)
{
	struct symbolizing *symbolizing = of;
	bool kernel = knows_kernel(symbolizing, record), added = false;

	for (size_t i = 0; i < json_array_size(list); i++)
		added |= stored_name(record, json_array_get(list, i), symbolizing->naming, kernel,
				     &symbolizing->account);
	return added;
}

static const char *text_of(const json_t *record, const char *key)
{
	return json_string_value(json_object_get(record, key));
}

static bool is_record(const json_t *record)
{
	return text_of(record, "type") && text_of(record, "schema_version") && text_of(record, "run_id") &&
	       json_is_integer(json_object_get(record, "seq"));
}

/* Within a major version members are only added, so older records can be read. Records of 1.0.0 only lack
 * `activity`. */
static bool is_readable(const json_t *record)
{
	return atoi(text_of(record, "schema_version")) <= atoi(SCHEMA_VERSION);
}

/* A sample or branch gets its names in place, and is written anew if there are any. */
static int take_record(struct symbolizing *symbolizing, json_t *record, const char *line, size_t size)
{
	struct compact named = {0};
	int err;

	if (!stored_name_single(record, symbolizing->naming, knows_kernel(symbolizing, record),
				&symbolizing->account))
		return restream_record(&symbolizing->restream, record, line, size);
	compact_add_value(&named, record);
	compact_add(&named, "\n", 1);
	err = restream_record(&symbolizing->restream, record, named.text, named.used);
	free(named.text);
	return err;
}

static int take_line(struct symbolizing *symbolizing, const char *line, size_t size)
{
	json_t *record = json_loadb(line, size, 0, NULL);

	if (record && is_record(record) && is_readable(record) && line[size - 1] == '\n') {
		if (!strcmp(text_of(record, "type"), "start"))
			note_boot(symbolizing, record);
		return take_record(symbolizing, record, line, size);
	}
	if (record && is_record(record) && !is_readable(record))
		symbolizing->newer++;
	else
		symbolizing->foreign += !stored_line_is_blank(line, size);
	json_decref(record);
	return sink_put(&symbolizing->sink, line, size);
}

/* A line that is too long for a record is copied in pieces. */
static int take_piece(struct symbolizing *symbolizing, const char *piece, size_t size)
{
	symbolizing->foreign += piece[size - 1] == '\n';
	return sink_put(&symbolizing->sink, piece, size);
}

/* Copies all lines. Returns 0, or -errno of a failed read. A failed write is kept in the sink. */
static int take_lines(struct symbolizing *symbolizing)
{
	struct stored_lines lines;
	const char *line;
	ssize_t size;
	bool whole;
	int err = 0;

	stored_lines_open(&lines, symbolizing->input.fd);
	while (!err && (size = stored_lines_next(&lines, &line, &whole)) > 0) {
		err = whole ? take_line(symbolizing, line, size) : take_piece(symbolizing, line, size);
		/* Before waiting for more input, what was read is written, for readers that follow a stream
		 * while it grows. */
		if (progress_due())
			progress_show_read(symbolizing->input.fd, lines.read);
		if (stored_lines_would_wait(&lines))
			sink_finish(&symbolizing->sink, ~0ULL);
	}
	stored_lines_close(&lines);
	if (!err)
		restream_end(&symbolizing->restream);
	return err ? 0 : size;
}

/* --- the command ---------------------------------------------------------------------------------- */

/* Returns 0, or an errno. */
static int open_records(struct symbolizing *symbolizing, const char *path, struct stat *stat)
{
	if (path && strcmp(path, "-"))
		return piped_open(&symbolizing->input, path, stat);
	symbolizing->input.fd = STDIN_FILENO;
	return fstat(STDIN_FILENO, stat) ? errno : 0;
}

/* Returns 0, or the errno of a failed read. */
static int close_records(struct symbolizing *symbolizing)
{
	return symbolizing->input.fd != STDIN_FILENO ? piped_close(&symbolizing->input) : 0;
}

static int open_input(struct symbolizing *symbolizing, struct refusal *refusal)
{
	const struct options *options = symbolizing->options;
	struct stat in;
	int error;

	if (options->nr_rest > 1) {
		refuse(refusal, STATUS_USAGE, "'%s'", options->rest[1]);
		return because(refusal, "symbolize reads one file, or stdin");
	}
	error = open_records(symbolizing, options->nr_rest ? options->rest[0] : NULL, &in);
	if (error) {
		refuse(refusal, STATUS_USAGE, "reading '%s'", options->rest[0]);
		refusal->error = error;
		return because(refusal, "it can't be opened: %s", strerror(error));
	}
	return check_not_read(options->output, options->rest, options->nr_rest, refusal);
}

static void read_boot_id(struct symbolizing *symbolizing)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (file && fgets(symbolizing->boot_id, sizeof(symbolizing->boot_id), file))
		symbolizing->boot_id[strcspn(symbolizing->boot_id, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Reports what can't be seen in the output. */
static void tell_rest(const struct symbolizing *symbolizing)
{
	const struct stored_account *account = &symbolizing->account;

	if (symbolizing->foreign)
		say("nhmtap: %zu lines are no records; they are passed on unchanged", symbolizing->foreign);
	if (symbolizing->newer)
		say("nhmtap: %zu records are of another version than " SCHEMA_VERSION
		    "; they are passed on unchanged",
		    symbolizing->newer);
	if (account->lines_why)
		say("nhmtap: some places lack source lines or inlined functions: %s", account->lines_why);
	if (account->unnamed)
		say("nhmtap: %zu places have names, %zu have none: %s%s%s", account->named, account->unnamed,
		    account->why ? account->why : "", account->why && account->kernel_why ? "; " : "",
		    account->kernel_why ? account->kernel_why : "");
}

static int symbolize(struct symbolizing *symbolizing, struct refusal *refusal)
{
	int err, failed;

	if (open_input(symbolizing, refusal) ||
	    sink_open(&symbolizing->sink, symbolizing->options->output, false, false, scribe_serve, refusal))
		return refusal->status;
	if (!symbolizing->sink.terminal)
		progress_begin(symbolizing->options->quiet);
	err = take_lines(symbolizing);
	failed = close_records(symbolizing);
	progress_end();
	if (sink_close(&symbolizing->sink)) {
		sink_refusal(&symbolizing->sink, refusal);
		return refusal->status;
	}
	if (err || failed) {
		refuse(refusal, STATUS_PARTIAL, "reading the records");
		because(refusal, "%s", strerror(err ? -err : failed));
		return refusal->status;
	}
	tell_rest(symbolizing);
	return STATUS_DONE;
}

/* Bytes of memory for names. More than for the other commands, because no measurement waits, and the whole
 * DWARF of a large program is read. */
#define MEMORY (1UL << 30)

static int run(const struct options *options, struct refusal *refusal)
{
	const struct symbolize_options *own = options->own;
	const struct naming_settings settings = {
		.root = own->symfs,
		.debug_dir = own->debug_dir,
		.kallsyms = own->kallsyms,
		.lines = true,
		.memory = MEMORY,
	};
	struct symbolizing symbolizing = {.options = options, .input = {.fd = -1}, .kernels = json_object()};
	int status;

	symbolizing.restream = (struct restream){
		.sink = &symbolizing.sink, .change = add_names, .list_of = stored_list, .of = &symbolizing};
	symbolizing.naming = naming_open(&settings);
	read_boot_id(&symbolizing);
	status = symbolize(&symbolizing, refusal);
	close_records(&symbolizing);
	naming_close(symbolizing.naming);
	json_decref(symbolizing.kernels);
	return status;
}

static const struct option_row rows[] = {
	{0, "symfs", "DIR", OPTION_TEXT, OWN(struct symbolize_options, symfs), .again = AGAIN_REFUSED,
	 .help = "look for programs, libraries and their debug files below DIR"},
	{0, "debug-dir", "DIR", OPTION_TEXT, OWN(struct symbolize_options, debug_dir), .again = AGAIN_REFUSED,
	 .help = "where debug files are (default /usr/lib/debug)"},
	{0, "kallsyms", "FILE", OPTION_TEXT, OWN(struct symbolize_options, kallsyms), .again = AGAIN_REFUSED,
	 .help = "a copy of /proc/kallsyms from the boot that the records are of; without it only this "
		 "boot's kernel has names"},
	{0},
};

static const struct command symbolize_command = {
	.name = "symbolize",
	.arguments = "[OPTIONS] [FILE]",
	.help = "adds names to the code in stored records: functions, source lines",
	.options = {output_rows, rows, quiet_rows, help_rows},
	.own_size = sizeof(struct symbolize_options),
	.run = run,
};
REGISTER_COMMAND(symbolize_command);
