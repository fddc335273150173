// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/again.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze/spots.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/note.h"
#include "output/member.h"
#include "record/stored_lines.h"

/* More records than a run without intervals writes. */
#define RECORDS_MOST (256 << 20)

/* Where the kernel paused the sampling, the next run takes one of so many samples; there are so many runs. */
#define FEWER	  4
#define RUNS_MOST 3

/* --- the command line ------------------------------------------------------------------------- */

/* Options whose values say what is measured, and by which tables. */
static const struct {
	const char *option;
	size_t offset;
} passed[] = {
	{"--pid", offsetof(struct options, pids)},
	{"--tid", offsetof(struct options, tids)},
	{"--cgroup", offsetof(struct options, cgroups)},
	{"--container", offsetof(struct options, containers)},
	{"--cpu", offsetof(struct options, cpus)},
	{"--events-dir", offsetof(struct options, events_dir)},
	{"--pmu-events", offsetof(struct options, pmu_events)},
	{"--memory", offsetof(struct options, memory)},
};

static void add_passed(struct arguments *line, const struct options *options)
{
	char seconds[32];

	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		arguments_add_option(line, passed[i].option,
				     *(const char *const *)((const char *)options + passed[i].offset));
	if (options->all_cpus)
		arguments_add(line, "--all-cpus");
	snprintf(seconds, sizeof(seconds), "%.9f", options->duration_s);
	arguments_add_option(line, "--duration", options->duration_s > 0 ? seconds : NULL);
}

/* The program is found by its process, wherever its file lies or lay. */
static void make_line(struct arguments *line, const struct activity *activity,
		      const struct arguments *command, int output)
{
	char place[40];

	arguments_add(line, "/proc/self/exe");
	for (size_t i = 0; i < command->nr; i++)
		arguments_add(line, command->words[i]);
	arguments_add(line, "--quiet");
	snprintf(place, sizeof(place), "json=/proc/self/fd/%d", output);
	arguments_add_option(line, "--output", place);
	add_passed(line, activity->options);
	if (activity->session->command) {
		arguments_add(line, "--");
		for (char *const *word = activity->session->command; *word; word++)
			arguments_add(line, *word);
	}
}

/* --- its process ------------------------------------------------------------------------------ */

/* Passes a signal on. One from the terminal has reached the process already. */
static void pass_on(struct session *session, const struct child *child, const siginfo_t *signal)
{
	if (signal->si_signo == SIGHUP)
		return;
	session->ended_by = signal->si_signo;
	if (signal->si_code != SI_KERNEL)
		kill(child->pid, signal->si_signo);
}

/* The session's signals are blocked, and nobody else reads them now. */
static void wait_for(struct session *session, struct child *child)
{
	siginfo_t signal;

	while (!child_reap(child)) {
		int number = sigwaitinfo(&session->ending, &signal);

		if (number > 0 && number != SIGCHLD)
			pass_on(session, child, &signal);
	}
}

static int run_again(struct session *session, char **words, char *why, size_t size)
{
	struct refusal refusal = {0};
	struct child child;

	if (child_start(&child, words, &session->inherited, &refusal) || child_go(&child, words, &refusal)) {
		snprintf(why, size, "%s", refusal.why);
		child_release(&child);
		return -1;
	}
	wait_for(session, &child);
	note("process %d, which sampled, has ended, status %d", child.pid, child_status(&child));
	child_release(&child);
	return 0;
}

/* --- its records ------------------------------------------------------------------------------ */

static json_t *read_records(int fd)
{
	json_t *records = json_array();
	struct stored_lines lines;
	const char *line;
	ssize_t size;
	bool whole;

	stored_lines_open(&lines, fd);
	while (lines.read <= RECORDS_MOST && (size = stored_lines_next(&lines, &line, &whole)) > 0) {
		json_t *record = whole ? json_loadb(line, size, 0, NULL) : NULL;

		if (json_is_object(record))
			json_array_append(records, record);
		json_decref(record);
	}
	stored_lines_close(&lines);
	return records;
}

/* Returns the records, or NULL with the reason that an error record gives. */
static json_t *checked(json_t *records, char *why, size_t size)
{
	json_t *record;
	size_t i;

	json_array_foreach(records, i, record) {
		if (strcmp(string(record, "type"), "error"))
			continue;
		snprintf(why, size, "%s: %s", string(record, "asked"), string(record, "why"));
		json_decref(records);
		return NULL;
	}
	if (json_array_size(records))
		return records;
	snprintf(why, size, "the run that samples wrote nothing");
	json_decref(records);
	return NULL;
}

json_t *again_run(struct activity *activity, const struct arguments *command, char *why, size_t size)
{
	/* Not closed on exec: the program that is run opens it by this number. */
	int output = memfd_create("nhmtap-where", 0);
	struct arguments line = {0};
	json_t *records = NULL;

	if (output < 0) {
		snprintf(why, size, "there is no memory for its records: %s", strerror(errno));
		return NULL;
	}
	make_line(&line, activity, command, output);
	if (!run_again(activity->session, line.words, why, size))
		records = checked(read_records(output), why, size);
	arguments_release(&line);
	close(output);
	return records;
}

/* --- as densely as the kernel lets it --------------------------------------------------------- */

/* The end of a run has the sum of its records. */
json_int_t again_sum(const json_t *records, const char *member)
{
	json_int_t sum = 0;
	json_t *record;
	size_t i;

	json_array_foreach(records, i, record)
		if (strcmp(string(record, "type"), "end"))
			sum += integer(json_object_get(record, "samples"), member);
	return sum;
}

json_t *again_sample(struct activity *activity, struct arguments *command, double occurrences, double wanted,
		     char *why, size_t size)
{
	const struct host *host = &activity->session->host;
	size_t nr = command->nr;
	json_t *records;

	for (int run = 1;; run++, wanted /= FEWER) {
		if (occurrences > 0)
			arguments_add_number(command, "-c", period_for(host, occurrences, wanted));
		records = again_run(activity, command, why, size);
		if (run == RUNS_MOST || occurrences <= 0 || activity->session->ended_by ||
		    !again_sum(records, "throttled"))
			return records;
		note("the kernel paused the sampling: it is done once more, with fewer samples");
		json_decref(records);
		arguments_drop(command, command->nr - nr);
	}
}
