// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/stored.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/analysis_record.h"
#include "analyze/stored_counts.h"
#include "analyze/where.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/visible.h"
#include "option/command.h"
#include "output/member.h"
#include "output/output.h"
#include "output/progress.h"
#include "record/overhead.h"
#include "record/record.h"
#include "run/run.h"
#include "view/reading.h"

#define WRITER "analyze" /* of the records */

/* --- what is asked for ------------------------------------------------------------------------ */

/* Whether execvp(3) would find a command of this name, which is no file here. */
static bool is_in_path(const char *name)
{
	const char *folders = NULL;
	char path[PATH_MAX];

	while (!strchr(name, '/') && path_next(&folders, name, path))
		if (!access(path, X_OK))
			return true;
	return false;
}

/* Whether records may come from there: a file that can't be run, and that is empty, begins as they do, or has
 * no command's name (a compressed one, for example), or a pipe. What is neither a file nor a command is
 * probably a file's misspelled name. */
static bool may_be_stream(const char *path)
{
	struct stat stat_of;
	char first = '{';
	int fd;

	if (!strcmp(path, "-"))
		return true;
	if (stat(path, &stat_of))
		return !is_in_path(path);
	if (S_ISFIFO(stat_of.st_mode))
		return true;
	if (!S_ISREG(stat_of.st_mode) || stat_of.st_mode & 0111)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && pread(fd, &first, 1, 0) < 0)
		first = 0;
	if (fd >= 0)
		close(fd);
	return first == '{' || !is_in_path(path);
}

static bool is_targeted(const struct options *options)
{
	return options->pids || options->tids || options->cgroups || options->each_cgroup ||
	       options->containers || options->cpus || options->all_cpus;
}

bool stored_asked(const struct options *options)
{
	struct stat stat;

	if (is_targeted(options))
		return false;
	if (options->nr_rest)
		return strcmp(options->rest[-1], "--") && may_be_stream(options->rest[0]);
	return !fstat(STDIN_FILENO, &stat) && (S_ISREG(stat.st_mode) || S_ISFIFO(stat.st_mode));
}

static int check_words(const struct options *options, struct refusal *refusal)
{
	if (options->nr_rest > 2) {
		refuse(refusal, STATUS_USAGE, "argument '%.200s'", options->rest[2]);
		if (options->rest[2][0] == '-') {
			because(refusal, "it stands behind the files");
			return instead(refusal, "options stand before them: nhmtap analyze %.200s … A B",
				       options->rest[2]);
		}
		because(refusal, "analyze compares the records of two files");
		return instead(refusal, "nhmtap analyze A B");
	}
	if (options->interval_ms || options->delay_ms || options->duration_s > 0) {
		refuse(refusal, STATUS_USAGE, "option --%s",
		       options->interval_ms ? "interval"
		       : options->delay_ms  ? "delay"
					    : "duration");
		because(refusal, "the records of a file are measured already");
		return instead(refusal, "nhmtap analyze FILE");
	}
	if (options->outputs.nr > 1) {
		refuse(refusal, STATUS_USAGE, "option --output '%.200s'", options->outputs.list[1]);
		because(refusal, "what stored records tell goes to one place");
		return instead(refusal, "give one --output");
	}
	return 0;
}

/* --- two streams ------------------------------------------------------------------------------ */

/* It has changed if the bounds have nothing in common. */
static void compare_share(json_t *share, const json_t *before)
{
	bool same = real_member(share, "low", 0) <= real_member(before, "high", 0) &&
		    real_member(before, "low", 0) <= real_member(share, "high", 0);
	json_t *was = json_object();

	json_object_set(was, "share", json_object_get(before, "share"));
	json_object_set(was, "low", json_object_get(before, "low"));
	json_object_set(was, "high", json_object_get(before, "high"));
	json_object_set_new(share, "before", was);
	json_object_set_new(share, "changed", json_boolean(!same));
}

static void compare_shares(json_t *now, const json_t *before)
{
	json_t *share;
	size_t i;

	json_array_foreach(json_object_get(now, "shares"), i, share) {
		const json_t *was = share_in(before, string(share, "name"));

		if (json_object_get(share, "share") && json_object_get(was, "share"))
			compare_share(share, was);
	}
}

/* Rows are compared by activity and keys; if each stream has one, that with the other. */
static int compare_all(const json_t *now, const json_t *before, struct refusal *refusal)
{
	bool single = json_array_size(now) == 1 && json_array_size(before) == 1;
	size_t compared = 0, i, k;
	json_t *one, *other;

	json_array_foreach(now, i, one)
		json_array_foreach(before, k, other) {
			if (!single && strcmp(string(one, "of"), string(other, "of")))
				continue;
			if (strcmp(string(json_object_get(one, "record"), "whole"),
				   string(json_object_get(other, "record"), "whole")))
				continue;
			compare_shares(json_object_get(one, "record"), json_object_get(other, "record"));
			compared++;
		}
	if (compared)
		return 0;
	refuse(refusal, STATUS_USAGE, "what changed");
	because(refusal, "the two files have no account of the same: of the same activity, target and kind "
			 "of CPU");
	return instead(refusal, "nhmtap analyze FILE shows each by itself");
}

/* --- expectations ----------------------------------------------------------------------------- */

static json_t *expect_of(const struct options *options, const struct expectation *expectation,
			 const json_t *analysis, enum status *status)
{
	const json_t *share = share_in(analysis, expectation->name);
	struct expected_finding finding = {
		.there = json_object_get(share, "share"),
		.value = 100 * real_member(share, "share", 0),
		.bound = {100 * real_member(share, "low", 0), 100 * real_member(share, "high", 0)},
		.unit = "%",
		.why = *string(share, "why") ? string(share, "why") : "these records have no such share"};

	return share_expectation_record(expectation, &finding, options->quiet, status);
}

static int parse_expected(struct expectations *expectations, const struct texts *texts,
			  struct refusal *refusal)
{
	for (size_t i = 0; i < texts->nr; i++)
		if (!share_expectation_add(expectations, texts->list[i], refusal))
			return -1;
	return 0;
}

/* --- reading and writing ---------------------------------------------------------------------- */

static void take_record(void *of, const json_t *record)
{
	stored_counts_take(of, record);
}

/* The analyses of a file (NULL: of stdin); NULL with the refusal. */
static json_t *read_analyses(const struct options *options, const char *file, struct refusal *refusal)
{
	struct stored_counts *stored = stored_counts_new(options);
	struct stored_reading reading = {.writer = "nhmtap", .take = take_record, .of = stored};
	json_t *list = NULL;

	if (file && !strcmp(file, "-"))
		file = NULL;
	if (!read_stored(&reading, file, refusal)) {
		list = stored_counts_analyses(stored, refusal);
		if (!options->quiet)
			stored_tell_early_end(&reading.end, file);
	}
	stored_counts_release(stored);
	return list;
}

/* Members of a start record that say what was measured, and where. */
static const char *const told[] = {"version", "resource", "host", "target", "events", "capabilities"};

static int write_stored_start(struct stream *stream, const json_t *start)
{
	json_t *record;

	if (!start)
		return 0;
	record = json_pack("{s:s, s:s}", "type", "start", "command", WRITER);
	for (size_t i = 0; i < ARRAY_SIZE(told); i++)
		json_object_set(record, told[i], json_object_get(start, told[i]));
	return stream_write(stream, record, WRITER);
}

static int write_stored_end(struct stream *stream, enum status status, __u64 duration_ns)
{
	return stream_write(stream,
			    json_pack("{s:s, s:s, s:I, s:i, s:o, s:I}", "type", "end", "reason", "done",
				      "duration_ns", (json_int_t)duration_ns, "exit_status", (int)status,
				      "overhead", overhead_value(NULL), "records",
				      (json_int_t)stream->records + 1),
			    WRITER);
}

/* Whether the records are of several activities, which a stream of one names. */
static bool several(const json_t *list)
{
	const char *first = string(json_array_get(list, 0), "activity");
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (strcmp(string(one, "activity"), first))
			return true;
	return false;
}

static int write_all(const struct options *options, const struct expectations *expectations,
		     const json_t *list, enum status *status, struct refusal *refusal)
{
	struct place_of_output place = {.format = options->format};
	struct stream stream;
	json_t *one;
	__u64 begun = clock_ns(CLOCK_MONOTONIC);
	size_t i;
	int err;

	if (options->outputs.nr && request_place(&place, options, options->outputs.list[0], refusal))
		return -1;
	if (check_not_read(place.path, options->rest, options->nr_rest, refusal) ||
	    stream_open(&stream, &place, options->command->name, refusal))
		return -1;
	stream.verbose = options->verbose;
	err = write_stored_start(&stream, json_object_get(json_array_get(list, 0), "start"));
	json_array_foreach(list, i, one) {
		json_t *record = json_object_get(one, "record");

		if (several(list))
			json_object_set(record, "measured_as", json_object_get(one, "activity"));
		err = err ? err : stream_write(&stream, json_incref(record), WRITER);
		for (size_t e = 0; e < expectations->nr && !err; e++)
			err = stream_write(
				&stream, expect_of(options, &expectations->list[e], record, status), WRITER);
	}
	err = err ? err : write_stored_end(&stream, *status, clock_ns(CLOCK_MONOTONIC) - begun);
	stream_finish(&stream, true);
	if (!stream_close(&stream) && !err)
		return 0;
	sink_refusal(&stream.sink, refusal);
	return -1;
}

static json_t *read_both(const struct options *options, struct refusal *refusal)
{
	json_t *before = NULL, *list;

	progress_begin(options->quiet);
	list = read_analyses(options, options->nr_rest ? options->rest[0] : NULL, refusal);
	if (list && options->nr_rest == 2) {
		before = list;
		list = read_analyses(options, options->rest[1], refusal);
	}
	progress_end();
	if (before && list && compare_all(list, before, refusal)) {
		json_decref(list);
		list = NULL;
	}
	json_decref(before);
	return list;
}

int stored_analyze(const struct options *options, const struct texts *expect, struct refusal *refusal)
{
	struct expectations expectations = {0};
	enum status status = STATUS_DONE;
	json_t *list = NULL;

	if (check_words(options, refusal) || parse_expected(&expectations, expect, refusal) ||
	    !(list = read_both(options, refusal)) ||
	    write_all(options, &expectations, list, &status, refusal))
		status = refusal->status;
	json_decref(list);
	free(expectations.list);
	return status;
}
