// SPDX-License-Identifier: GPL-2.0-only
#include "top/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arguments.h"
#include "base/clock.h"
#include "base/memory.h"

#define INTERVAL_MS 1000
#define FREQUENCY   999
#define FIFO	    "records"
#define CONFIG	    "config.json"
#define END_NS	    10000000000ULL /* a process that is to end has this long */
#define SELF	    "/proc/self/exe"

/* --- what is started -------------------------------------------------------------------------- */

/* Whether the arguments of an activity say how long an interval is, or that there is one of another kind. */
static bool have_interval(const struct feed_wanted *wanted)
{
	for (int i = 0; i < wanted->nr_words && strcmp(wanted->words[i], "--"); i++)
		if (!strncmp(wanted->words[i], "-I", 2) || !strncmp(wanted->words[i], "--interval", 10) ||
		    !strncmp(wanted->words[i], "-r", 2) || !strncmp(wanted->words[i], "--repeat", 8))
			return true;
	return false;
}

static void add_output(struct arguments *line, const char *path)
{
	char *place = xasprintf("json=%s", path);

	arguments_add_option(line, "-o", place);
	free(place);
}

static void add_activity(struct arguments *line, const struct feed_wanted *wanted, const char *fifo)
{
	const struct options *options = wanted->options;

	arguments_add(line, wanted->words[0]);
	if (!have_interval(wanted))
		arguments_add_number(line, "-I", options->interval_ms ?: INTERVAL_MS);
	add_output(line, fifo);
	if (wanted->record)
		add_output(line, wanted->record);
	arguments_add_option(line, "-e", options->events);
	if (options->period)
		arguments_add_number(line, "-c", options->period);
	if (options->frequency)
		arguments_add_number(line, "-F", options->frequency);
	arguments_add_option(line, "-p", options->pids);
	arguments_add_option(line, "-t", options->tids);
	arguments_add_option(line, "-G", options->cgroups);
	arguments_add_option(line, "--container", options->containers);
	arguments_add_option(line, "-C", options->cpus);
	if (options->all_cpus)
		arguments_add(line, "-a");
	for (int i = 1; i < wanted->nr_words; i++)
		arguments_add(line, wanted->words[i]);
}

static void set_text(json_t *object, const char *member, const char *value)
{
	if (value)
		json_object_set_new(object, member, json_string(value));
}

static json_t *activity_of(const struct feed_wanted *wanted, const char *name, const char *command)
{
	const struct options *options = wanted->options;
	bool target = options->pids || options->tids || options->cgroups || options->containers ||
		      options->cpus || wanted->nr_words;
	json_t *activity = json_pack("{s:s, s:s, s:I}", "name", name, "command", command, "interval_ms",
				     (json_int_t)(options->interval_ms ?: INTERVAL_MS));

	set_text(activity, "pid", options->pids);
	set_text(activity, "tid", options->tids);
	set_text(activity, "cgroup", options->cgroups);
	set_text(activity, "container", options->containers);
	set_text(activity, "cpu", options->cpus);
	if (options->all_cpus || !target)
		json_object_set_new(activity, "all_cpus", json_true());
	return activity;
}

/* What runs hot: samples with their stacks, and usual counts. */
static json_t *hot_config(const struct feed_wanted *wanted)
{
	const struct options *options = wanted->options;
	json_t *hot = activity_of(wanted, "hot", "profile"), *list = json_array();

	json_object_set_new(hot, "call_graph", json_true());
	json_object_set_new(hot, "top", json_integer(500));
	set_text(hot, "event", options->events);
	if (options->period)
		json_object_set_new(hot, "count", json_integer(options->period));
	else
		json_object_set_new(hot, "freq", json_integer(options->frequency ?: FREQUENCY));
	json_array_append_new(list, hot);
	json_array_append_new(list, activity_of(wanted, "counts", "stat"));
	return json_pack("{s:o}", "activities", list);
}

static int write_config(const struct feed_wanted *wanted, const char *path, const char *fifo)
{
	json_t *config = wanted->config ? json_deep_copy(wanted->config) : hot_config(wanted);
	json_t *outputs = json_object_get(config, "outputs");
	int err;

	if (!outputs) {
		outputs = json_array();
		json_object_set_new(config, "outputs", outputs);
	}
	json_array_append_new(outputs, json_pack("{s:s, s:s}", "path", fifo, "format", "json"));
	if (wanted->record)
		json_array_append_new(outputs,
				      json_pack("{s:s, s:s}", "path", wanted->record, "format", "json"));
	err = json_dump_file(config, path, 0);
	json_decref(config);
	return err;
}

static int add_run(struct arguments *line, const struct feed_wanted *wanted, const char *folder,
		   const char *fifo)
{
	char *path = xasprintf("%s/" CONFIG, folder);
	int err = write_config(wanted, path, fifo);

	arguments_add(line, "run");
	arguments_add(line, path);
	free(path);
	if (wanted->nr_words)
		arguments_add(line, "--");
	for (int i = 0; i < wanted->nr_words; i++)
		arguments_add(line, wanted->words[i]);
	return err;
}

/* --- starting --------------------------------------------------------------------------------- */

static void remove_folder(struct feed *feed)
{
	static const char *const names[] = {FIFO, CONFIG};

	for (size_t i = 0; *feed->folder && i < 2; i++) {
		char *path = xasprintf("%s/%s", feed->folder, names[i]);

		unlink(path);
		free(path);
	}
	if (*feed->folder)
		rmdir(feed->folder);
	*feed->folder = '\0';
}

/* A COMMAND does not get the terminal's keys. */
static void become(char **words, int said)
{
	int null = open("/dev/null", O_RDWR);

	if (isatty(STDIN_FILENO))
		dup2(null, STDIN_FILENO);
	dup2(said, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	execv(SELF, words);
	dprintf(STDERR_FILENO, "nhmtap: %s: %s\n", SELF, strerror(errno));
	_exit(127);
}

static int fork_feed(struct feed *feed, const struct arguments *line, const char *fifo)
{
	int said[2];

	feed->records = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (feed->records < 0 || pipe2(said, O_CLOEXEC))
		return -1;
	feed->pid = fork();
	if (!feed->pid)
		become(line->words, said[1]);
	close(said[1]);
	feed->said = said[0];
	fcntl(feed->said, F_SETFL, O_NONBLOCK);
	return feed->pid < 0 ? -1 : 0;
}

static int start_in(struct feed *feed, const struct feed_wanted *wanted)
{
	char *fifo = xasprintf("%s/" FIFO, feed->folder);
	struct arguments line = {0};
	int err = mkfifo(fifo, 0600);

	arguments_add(&line, "nhmtap");
	if (!err && wanted->activity)
		add_activity(&line, wanted, fifo);
	else if (!err)
		err = add_run(&line, wanted, feed->folder, fifo);
	if (!err)
		err = fork_feed(feed, &line, fifo);
	err = err ? errno : 0;
	arguments_release(&line);
	free(fifo);
	return err;
}

int feed_start(struct feed *feed, const struct feed_wanted *wanted, struct refusal *refusal)
{
	const char *where = getenv("TMPDIR");
	int err = 0;

	*feed = (struct feed){.records = -1, .said = -1};
	snprintf(feed->folder, sizeof(feed->folder), "%.40s/nhmtap-top-XXXXXX",
		 where && *where && strlen(where) <= 40 ? where : "/tmp");
	if (!mkdtemp(feed->folder)) {
		err = errno;
		refuse(refusal, STATUS_REFUSED, "a folder %s", feed->folder);
		*feed->folder = '\0';
	} else {
		err = start_in(feed, wanted);
		if (err)
			refuse(refusal, STATUS_REFUSED, "the process that measures");
	}
	if (!err) {
		stored_lines_open(&feed->lines, feed->records);
		return 0;
	}
	remove_folder(feed);
	refusal->error = err;
	because(refusal, "it can't be made: %s", strerror(err));
	return instead(refusal, "set TMPDIR to a folder that can be written to");
}

void feed_from_stdin(struct feed *feed)
{
	*feed = (struct feed){.records = dup(STDIN_FILENO), .said = -1};
	fcntl(feed->records, F_SETFL, fcntl(feed->records, F_GETFL) | O_NONBLOCK);
	stored_lines_open(&feed->lines, feed->records);
}

/* --- reading ---------------------------------------------------------------------------------- */

static void end_records(struct feed *feed)
{
	if (feed->records < 0)
		return;
	close(feed->records);
	stored_lines_close(&feed->lines);
	feed->records = -1;
}

ssize_t feed_line(struct feed *feed, const char **line)
{
	struct pollfd ready = {.fd = feed->records, .events = POLLIN};
	bool whole;
	ssize_t size;

	if (feed->records < 0)
		return 0;
	/* A FIFO that nobody has opened yet would be taken for one that has ended. */
	if (stored_lines_would_wait(&feed->lines) && poll(&ready, 1, 0) <= 0)
		return 0;
	size = stored_lines_next(&feed->lines, line, &whole);
	if (size > 0 && *feed->folder)
		remove_folder(feed);
	if (!size || (size < 0 && size != -EAGAIN))
		end_records(feed);
	return size > 0 ? size : 0;
}

size_t feed_said(struct feed *feed, char *text, size_t size)
{
	ssize_t got = feed->said < 0 ? 0 : read(feed->said, text, size);

	if (feed->said >= 0 && (!got || (got < 0 && errno != EAGAIN && errno != EINTR))) {
		close(feed->said);
		feed->said = -1;
	}
	return got > 0 ? got : 0;
}

void feed_look(struct feed *feed)
{
	if (feed->pid > 0 && waitpid(feed->pid, &feed->status, WNOHANG) == feed->pid)
		feed->pid = 0;
}

void feed_end(struct feed *feed)
{
	__u64 until = clock_ns(CLOCK_MONOTONIC) + END_NS;
	const char *line;
	char text[4096];

	if (feed->pid > 0)
		kill(feed->pid, SIGTERM);
	for (feed_look(feed); feed->pid > 0 && clock_ns(CLOCK_MONOTONIC) < until; feed_look(feed)) {
		struct pollfd ready = {.fd = feed->records, .events = POLLIN};

		while (feed_line(feed, &line) || feed_said(feed, text, sizeof(text)))
			;
		poll(&ready, feed->records >= 0, 20);
	}
	if (feed->pid > 0) {
		kill(feed->pid, SIGKILL);
		waitpid(feed->pid, &feed->status, 0);
	}
	end_records(feed);
	if (feed->said >= 0)
		close(feed->said);
	remove_folder(feed);
}
