// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/again.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/note.h"
#include "output/member.h"

/* More records than a run without intervals writes. */
#define RECORDS_MOST (256 << 20)

void again_add(struct again *again, char *word)
{
	again->words[again->nr++] = word;
}

void again_release(struct again *again)
{
	for (size_t i = 0; i < again->nr; i++)
		free(again->words[i]);
	again->nr = 0;
}

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

struct command_line {
	char **words;
	size_t nr, room;
};

static void add_word(struct command_line *line, char *word)
{
	line->words = xroom(line->words, line->nr, &line->room, sizeof(*line->words));
	line->words[line->nr++] = word;
}

static void add_copy(struct command_line *line, const char *word)
{
	add_word(line, xstrdup(word));
}

static void add_passed(struct command_line *line, const struct options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
		const char *value = *(const char *const *)((const char *)options + passed[i].offset);

		if (!value)
			continue;
		add_copy(line, passed[i].option);
		add_copy(line, value);
	}
	if (options->all_cpus)
		add_copy(line, "--all-cpus");
	if (options->duration_s > 0) {
		add_copy(line, "--duration");
		add_word(line, xasprintf("%.9f", options->duration_s));
	}
}

/* The program is found by its process, wherever its file lies or lay. */
static void make_line(struct command_line *line, const struct activity *activity, const struct again *again,
		      int output)
{
	add_copy(line, "/proc/self/exe");
	for (size_t i = 0; i < again->nr; i++)
		add_copy(line, again->words[i]);
	add_copy(line, "--quiet");
	add_copy(line, "--output");
	add_word(line, xasprintf("json=/proc/self/fd/%d", output));
	add_passed(line, activity->options);
	if (activity->session->command) {
		add_copy(line, "--");
		for (char *const *word = activity->session->command; *word; word++)
			add_copy(line, *word);
	}
	add_word(line, NULL);
}

static void forget_line(struct command_line *line)
{
	for (size_t i = 0; i < line->nr; i++)
		free(line->words[i]);
	free(line->words);
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

static int run(struct session *session, char **words, char *why, size_t size)
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

static json_t *parse_records(char *text, size_t length)
{
	json_t *records = json_array();

	for (char *line = text, *end;
	     line < text + length && (end = memchr(line, '\n', text + length - line)); line = end + 1) {
		json_t *record = json_loadb(line, end - line, 0, NULL);

		if (json_is_object(record))
			json_array_append(records, record);
		json_decref(record);
	}
	return records;
}

static json_t *read_records(int fd)
{
	struct stat about;
	json_t *records;
	char *text;

	if (fstat(fd, &about) || about.st_size <= 0 || about.st_size > RECORDS_MOST)
		return json_array();
	text = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return json_array();
	records = parse_records(text, about.st_size);
	munmap(text, about.st_size);
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

json_t *again_run(struct activity *activity, const struct again *again, char *why, size_t size)
{
	/* Not closed on exec: the program that is run opens it by this number. */
	int output = memfd_create("nhmtap-where", 0);
	struct command_line line = {0};
	json_t *records = NULL;

	if (output < 0) {
		snprintf(why, size, "there is no memory for its records: %s", strerror(errno));
		return NULL;
	}
	make_line(&line, activity, again, output);
	if (!run(activity->session, line.words, why, size))
		records = checked(read_records(output), why, size);
	forget_line(&line);
	close(output);
	return records;
}
