// SPDX-License-Identifier: GPL-2.0-only
#include "view/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/copied.h"
#include "base/piped.h"
#include "base/visible.h"
#include "output/member.h"
#include "output/progress.h"
#include "record/stored_lines.h"
#include "view/singles.h"

/* Where a stream is being read. */
struct place_in_stream {
	const char *file; /* its name, for messages */
	size_t line;
	char run_id[40]; /* of the record that was read last */
	json_int_t seq;
	long open; /* number of runs and activities without an end */
	struct summed_up summed;
};

static int refuse_line(const struct stored_reading *reading, const struct place_in_stream *at,
		       const char *why, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "line %zu of %.200s", at->line, at->file);
	because(refusal, "it is no record: %.200s", why);
	return instead(refusal, "give it what %s --format json writes", reading->writer);
}

/* Other tools write records in other layouts, which one command undoes. */
static int refuse_layout(const struct place_in_stream *at, const char *why, const char *filter,
			 struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "line %zu of %.200s", at->line, at->file);
	because(refusal, "it is %s, and each line has to be one record", why);
	return instead(refusal, "jq -c %s makes lines of what is JSON in another layout", filter);
}

/* What a file of another kind begins with. */
static const struct {
	const char *begin, *what, *remedy;
} others[] = {{"\x1f\x8b", "compressed with gzip", "give it what zcat makes of it"},
	      {"\x28\xb5\x2f\xfd", "compressed with zstd",
	       "name the file FILE.zst, or give it what zstdcat makes of it"},
	      {"\xfd\x37zXZ", "compressed with xz", "give it what xzcat makes of it"},
	      {"PERFILE2", "perf's data", "perf report -i FILE shows it"},
	      {"\x7f\x45LF", "a program", "nhmtap profile -o FILE -- PROGRAM writes records of it"}};

/* Refuses a file of another kind by its first line. Returns 0 if it is none of those that are known. */
static int refuse_other(const struct place_in_stream *at, const char *line, size_t size,
			struct refusal *refusal)
{
	for (size_t i = 0; at->line == 1 && i < ARRAY_SIZE(others); i++) {
		if (size < strlen(others[i].begin) || memcmp(line, others[i].begin, strlen(others[i].begin)))
			continue;
		refuse(refusal, STATUS_USAGE, "records of %.200s", at->file);
		because(refusal, "it is %s", others[i].what);
		return instead(refusal, "%s", others[i].remedy);
	}
	return 0;
}

static int check_record(const json_t *record, struct place_in_stream *at, struct refusal *refusal)
{
	const char *run_id = string(record, "run_id"), *version = string(record, "schema_version");
	json_int_t seq = integer(record, "seq");
	/* A start with many events is cut into parts. */
	bool begins = !strcmp(string(record, "type"), "start") && integer(record, "part") <= 1;
	bool behind = *run_id && !strcmp(run_id, at->run_id) && seq <= at->seq && !begins;

	if (atoi(version) > atoi(SCHEMA_VERSION)) {
		refuse(refusal, STATUS_USAGE, "line %zu of %.200s", at->line, at->file);
		because(refusal, "its schema_version is %.40s, and this nhmtap reads records up to %s",
			version, SCHEMA_VERSION);
		return instead(refusal, "use the nhmtap that wrote it, or a later one");
	}
	if (behind) {
		refuse(refusal, STATUS_USAGE, "line %zu of %.200s", at->line, at->file);
		because(refusal, "its seq %lld does not follow seq %lld of the line before", (long long)seq,
			(long long)at->seq);
		return instead(refusal, "give the records in the order in which they were written");
	}
	snprintf(at->run_id, sizeof(at->run_id), "%s", run_id);
	at->seq = seq;
	at->open += begins - !strcmp(string(record, "type"), "end");
	return 0;
}

static int take_line(struct stored_reading *reading, struct place_in_stream *at, const char *line,
		     size_t size, struct refusal *refusal)
{
	json_error_t error;
	json_t *record;
	int err;

	if (stored_line_is_blank(line, size))
		return 0;
	record = json_loadb(line, size, 0, &error);
	if (!record && refuse_other(at, line, size, refusal))
		return -1;
	if (!record && json_error_code(&error) == json_error_end_of_input_expected)
		return refuse_layout(at, "more than one record", ".", refusal);
	if (!record && line[size - 1] != '\n') {
		reading->end.cut = true;
		return 0;
	}
	if (!record && json_error_code(&error) == json_error_premature_end_of_input)
		return refuse_layout(at, "not whole", *line == '[' ? "'.[]'" : ".", refusal);
	if (!record)
		return refuse_line(reading, at, error.text, refusal);
	if (json_is_array(record)) {
		json_decref(record);
		return refuse_layout(at, "an array", "'.[]'", refusal);
	}
	err = check_record(record, at, refusal);
	if (!strcmp(string(record, "type"), "error"))
		snprintf(reading->end.error, sizeof(reading->end.error), "%.150s: %.240s",
			 string(record, "asked"), string(record, "why"));
	if (!err && !is_summed_up(&at->summed, record)) {
		if (!strcmp(string(record, "type"), "sample"))
			single_take(record, reading->take, reading->of);
		else
			reading->take(reading->of, record);
	}
	json_decref(record);
	return err;
}

static int refuse_rest(const struct place_in_stream *at, int error, struct refusal *refusal)
{
	refuse(refusal, STATUS_PARTIAL, "reading the records of %.200s", at->file);
	return because(refusal, "%s", strerror(error));
}

static int take_lines(struct stored_reading *reading, struct place_in_stream *at, int fd,
		      struct refusal *refusal)
{
	struct stored_lines lines;
	const char *line;
	ssize_t size;
	bool whole;
	int err = 0;

	stored_lines_open(&lines, fd);
	while (!err && (size = stored_lines_next(&lines, &line, &whole)) > 0) {
		if (progress_due())
			progress_show_read(fd, lines.read);
		at->line++;
		if (whole)
			err = take_line(reading, at, line, size, refusal);
		else
			err = refuse_line(reading, at, "it is too long", refusal);
	}
	stored_lines_close(&lines);
	return err || !size ? err : refuse_rest(at, -size, refusal);
}

int read_stored(struct stored_reading *reading, const char *file, struct refusal *refusal)
{
	struct place_in_stream at = {.file = file ? file : "stdin", .seq = -1};
	struct piped piped = {.fd = STDIN_FILENO};
	struct stat stat;
	int err, failed;

	if (file && !strcmp(file, "-")) /* as other programs have it */
		at.file = "stdin", file = NULL;
	err = file ? piped_open(&piped, file, &stat) : 0;
	if (err) {
		refuse(refusal, STATUS_USAGE, "file '%.200s'", file);
		refusal->error = err;
		because(refusal, "it can't be read: %s", strerror(err));
		return instead(refusal, "give it a file that %s has written", reading->writer);
	}
	reading->end = (struct stored_end){false};
	err = take_lines(reading, &at, piped.fd, refusal);
	reading->end.open = at.open > 0;
	summed_up_release(&at.summed);
	failed = file ? piped_close(&piped) : 0;
	return !err && failed ? refuse_rest(&at, failed, refusal) : err;
}

int check_not_read(const char *output, char *const *files, int nr, struct refusal *refusal)
{
	struct stat out, in;
	bool same = false;

	if (!output || copied_stat(output, &out, COPIED_WAIT_NS) || !S_ISREG(out.st_mode))
		return 0;
	for (int i = 0; i < (nr ? nr : 1) && !same; i++)
		same = !(nr ? copied_stat(files[i], &in, COPIED_WAIT_NS) : fstat(STDIN_FILENO, &in)) &&
		       in.st_dev == out.st_dev && in.st_ino == out.st_ino;
	if (!same)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --output '%.200s'", output);
	because(refusal, "it is the file that is read");
	return instead(refusal, "give another name, and rename it afterwards");
}

const char *stored_early_end(const struct stored_end *end)
{
	if (end->cut)
		return "the stream has no end, and its last line is not whole: it was cut, or is still being "
		       "written";
	return end->open ? "the stream has no end: it was cut, or is still being written" : "";
}

void stored_tell_early_end(const struct stored_end *end, const char *file)
{
	const char *early = stored_early_end(end);

	if (*early)
		say("nhmtap: %s: %s", file ?: "stdin", early);
}

int stored_has_no(const char *what, const struct stored_end *end, struct refusal *refusal)
{
	const char *early = stored_early_end(end);

	if (*end->error)
		return because(refusal, "there are %s in these records, but an error: %s", what, end->error);
	return because(refusal, "there are %s in these records%s%s", what, *early ? "; " : "", early);
}

int stored_has_nothing(const struct stored_end *end, struct refusal *refusal)
{
	stored_has_no("no counts and no samples", end, refusal);
	if (*end->error)
		return instead(refusal, "mend that, and measure again");
	return instead(refusal, "give it what nhmtap stat, profile, mem, branch, offcore, analyze or stream "
				"writes with -o FILE; "
				"doctor, explain and list show theirs with --format table");
}
