// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap report: one page that shows a stored stream of records over time, or two side by side. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/embedded.h"
#include "base/path.h"
#include "option/command.h"
#include "output/progress.h"
#include "output/scribe_server.h"
#include "output/sink.h"
#include "output/text.h"
#include "record/record.h"
#include "view/digest.h"
#include "view/reading.h"

struct report_options {
	const char *title;
};

/* Bytes of stacks over time in a page: what else it has takes less than the rest of 5 MB. */
#define PAGE_BYTES (3 << 20)

static void take_digested(void *of, const json_t *record)
{
	digest_take(of, record);
}

#define STREAMS_MOST 2

struct report_input {
	struct digest *streams[STREAMS_MOST];
	struct stored_end ends[STREAMS_MOST];
	int nr;
};

/* Reads a stream; file is NULL for stdin. */
static int read_digest(struct report_input *reported, const char *file, struct refusal *refusal)
{
	struct digest *digest = digest_new();
	struct stored_reading reading = {.writer = "nhmtap", .take = take_digested, .of = digest};

	reported->streams[reported->nr] = digest;
	if (reported->nr++)
		digest_align(digest, reported->streams[0]);
	if (read_stored(&reading, file, refusal))
		return -1;
	reported->ends[reported->nr - 1] = reading.end;
	if (digest_has_content(digest))
		return 0;
	refuse(refusal, STATUS_USAGE, "report of %.200s", file ? path_last(file) : "stdin");
	return stored_has_nothing(&reading.end, refusal);
}

/* Adds JSON that is safe within an HTML page: no name can close the element that holds it. */
static void add_safely(struct text *page, const json_t *value)
{
	char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII);

	for (const char *at = dumped; *at;) {
		size_t length = strcspn(at, "<");

		text_add(page, "%.*s%s", (int)length, at, at[length] ? "\\u003c" : "");
		at += length + !!at[length];
	}
	free(dumped);
}

#define DATA_MARK "@DATA@"

static int write_report(const json_t *data, const char *path, struct refusal *refusal)
{
	struct embedded form = embedded_find("report.html");
	const char *mark = strstr(form.data, DATA_MARK);
	struct text page = {0};
	struct sink sink;

	if (sink_open(&sink, path, false, false, scribe_serve, refusal))
		return -1;
	text_add(&page, "%.*s", (int)(mark - form.data), form.data);
	add_safely(&page, data);
	text_add(&page, "%s", mark + strlen(DATA_MARK));
	sink_put(&sink, page.bytes, page.used);
	free(page.bytes);
	return sink_close(&sink) ? sink_refusal(&sink, refusal) : 0;
}

static int read_all(struct report_input *reported, const struct options *options, struct refusal *refusal)
{
	int nr = options->nr_rest ? options->nr_rest : 1;

	for (int i = 0; i < nr; i++)
		if (read_digest(reported, options->nr_rest ? options->rest[i] : NULL, refusal))
			return -1;
	return 0;
}

static json_t *streams_value(const struct report_input *reported, const struct options *options)
{
	json_t *streams = json_array();

	for (int i = 0; i < reported->nr; i++) {
		if (i + 1 < reported->nr)
			digest_align(reported->streams[i], reported->streams[i + 1]);
		json_array_append_new(streams,
				      digest_value(reported->streams[i],
						   reported->nr > 1 ? reported->streams[!i] : NULL,
						   options->nr_rest ? path_last(options->rest[i]) : "stdin",
						   &reported->ends[i], PAGE_BYTES / reported->nr));
	}
	return streams;
}

static int report(const struct options *options, struct refusal *refusal)
{
	const struct report_options *own = options->own;
	const char *title = own->title ?: "";
	struct report_input reported = {.nr = 0};
	json_t *data;
	int err;

	if (check_not_read(options->output, options->rest, options->nr_rest, refusal))
		return -1;
	progress_begin(options->quiet);
	err = read_all(&reported, options, refusal);
	progress_end();
	if (!err) {
		data = json_pack("{so so}", "streams", streams_value(&reported, options), "title",
				 value_text(title, strlen(title)));
		err = write_report(data, options->output, refusal);
		json_decref(data);
	}
	for (int i = 0; i < reported.nr; i++)
		digest_release(reported.streams[i]);
	return err;
}

static int run(const struct options *options, struct refusal *refusal)
{
	if (options->nr_rest > 2 || (!options->nr_rest && isatty(STDIN_FILENO))) {
		refuse(refusal, STATUS_USAGE, "report");
		because(refusal, "it reads the records of one file or of two, or from stdin");
		instead(refusal, "nhmtap report records.jsonl > page.html");
		return refusal->status;
	}
	return report(options, refusal) ? (int)refusal->status : STATUS_DONE;
}

static const struct option_row rows[] = {
	{0, "title", "TEXT", OPTION_TEXT, OWN(struct report_options, title), .help = "the page's heading"},
	{0},
};

static const struct command report_command = {
	.name = "report",
	.arguments = "[OPTIONS] [A [B]] < RECORDS",
	.help = "makes an HTML page of stored records over time, or of two streams side by side",
	.options = {rows, output_rows, quiet_rows, help_rows},
	.own_size = sizeof(struct report_options),
	.run = run,
};
REGISTER_COMMAND(report_command);
