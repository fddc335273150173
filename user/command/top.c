// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap top: a screen of what is being measured, or of stored records as they were written. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/visible.h"
#include "option/command.h"
#include "output/progress.h"
#include "output/text.h"
#include "top/feed.h"
#include "top/model.h"
#include "top/screen.h"
#include "view/reading.h"

#define TICK_MS 100

struct top_options {
	const char *record;
};

/* A running nhmtap top. */
struct top_run {
	struct top_model *model;
	struct feed feed;
	bool feeding, open;
	bool piped;	  /* from stdin, whose end has not been seen yet */
	bool own_config;  /* no file of the user's says what is measured */
	struct text said; /* what was written before anything could be shown */
	int keys;
};

static volatile sig_atomic_t told_to_end;

static void on_end(int number)
{
	told_to_end = number;
}

static void catch_ends(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_end};

	for (size_t i = 0; i < 4; i++)
		sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* --- input ------------------------------------------------------------------------------------ */

static void take_stored(void *of, const json_t *record)
{
	char *line = json_dumps(record, JSON_COMPACT);

	if (line)
		top_take(of, line, strlen(line));
	free(line);
}

static int read_replayed(struct top_run *run, const char *path, bool quiet, struct refusal *refusal)
{
	struct stored_reading reading = {.writer = "nhmtap", .take = take_stored, .of = run->model};
	int err;

	progress_begin(quiet);
	err = read_stored(&reading, path, refusal);
	progress_end();
	if (err)
		return err;
	if (!top_has_content(run->model)) {
		refuse(refusal, STATUS_USAGE, "top of %.200s", path);
		return stored_has_nothing(&reading.end, refusal);
	}
	top_replays(run->model, &reading.end);
	return 0;
}

/* Takes what has come. A bound keeps the keys alive while much comes. */
static void take_fed(struct top_run *run)
{
	char text[4096];
	const char *line;
	ssize_t size;
	size_t said;

	for (int i = 0; i < 2000 && (size = feed_line(&run->feed, &line)); i++)
		top_take(run->model, line, size);
	while ((said = feed_said(&run->feed, text, sizeof(text)))) {
		top_say(run->model, text, said);
		if (!top_has_content(run->model))
			text_add(&run->said, "%.*s", (int)said, text);
	}
}

static void look_for_end(struct top_run *run)
{
	bool before = run->feed.pid > 0;
	char how[60];

	if (run->piped && run->feed.records < 0) {
		top_ended(run->model, "ENDED");
		run->piped = false;
	}
	feed_look(&run->feed);
	if (!before || run->feed.pid > 0)
		return;
	take_fed(run);
	if (WIFEXITED(run->feed.status) && !WEXITSTATUS(run->feed.status))
		snprintf(how, sizeof(how), "ENDED");
	else
		snprintf(how, sizeof(how), "ENDED with status %d: see 8",
			 WIFEXITED(run->feed.status) ? WEXITSTATUS(run->feed.status)
						     : 128 + WTERMSIG(run->feed.status));
	top_ended(run->model, how);
}

/* --- the loop --------------------------------------------------------------------------------- */

static bool take_keys(struct top_run *run)
{
	int key, columns, rows;

	while ((key = terminal_screen.key()) >= 0)
		if (!top_key(run->model, key))
			return false;
	terminal_screen.size(&columns, &rows);
	top_resize(run->model, columns, rows);
	return true;
}

/* Measuring may end or be refused before there is anything to see: this is told without a screen. */
static bool ended_early(const struct top_run *run)
{
	return run->feeding && run->feed.pid <= 0 && run->feed.said < 0 && run->feed.records < 0 &&
	       !top_has_content(run->model);
}

static void show_until_end(struct top_run *run)
{
	struct pollfd ready[3] = {
		{.fd = run->keys, .events = POLLIN}, {.events = POLLIN}, {.events = POLLIN}};

	while (!told_to_end && !ended_early(run)) {
		if (run->feeding) {
			take_fed(run);
			look_for_end(run);
		}
		if (!take_keys(run))
			break;
		if (top_tick(run->model, clock_ns(CLOCK_MONOTONIC)))
			terminal_screen.draw(top_draw(run->model));
		ready[1].fd = run->feeding ? run->feed.records : -1;
		ready[2].fd = run->feeding ? run->feed.said : -1;
		poll(ready, 3, TICK_MS);
		if (ready[0].revents & (POLLERR | POLLHUP | POLLNVAL))
			break;
	}
}

/* Prints why measuring was refused. Places in a CONFIG that top has made tell the user nothing. */
static void print_said(const struct top_run *run)
{
	static const char place[] = "nhmtap: CONFIG, /";
	const char *text = run->said.bytes, *what = NULL;

	if (run->own_config && !strncmp(text, place, strlen(place)))
		what = strstr(text, ": ");
	if (what)
		what = strstr(what + 2, ": ");
	fprintf(stderr, "%s%s", what ? "nhmtap" : "", what ?: text);
}

static int show_screen(struct top_run *run, struct refusal *refusal)
{
	int status = STATUS_DONE;

	catch_ends();
	show_until_end(run);
	terminal_screen.close();
	run->open = false;
	if (ended_early(run)) {
		status = WIFEXITED(run->feed.status) && WEXITSTATUS(run->feed.status)
				 ? WEXITSTATUS(run->feed.status)
				 : STATUS_PARTIAL;
		if (run->said.used)
			print_said(run);
		else
			say("nhmtap top: there was nothing to show");
	}
	return status;
}

/* --- what is asked for ------------------------------------------------------------------------ */

/* CONFIG's content if the file is one; NULL: it holds records, or is something else. */
static json_t *read_as_config(const char *path)
{
	struct stat stat_of;
	json_t *read;

	if (stat(path, &stat_of) || !S_ISREG(stat_of.st_mode))
		return NULL;
	read = json_load_file(path, 0, NULL);
	if (json_object_get(read, "activities") && !json_object_get(read, "type"))
		return read;
	json_decref(read);
	return NULL;
}

static int refuse_words(const char *word, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "argument '%.200s'", word);
	if (*word == '-') {
		because(refusal, "top's own options come before CONFIG or FILE, and a COMMAND behind --");
		return instead(refusal, "nhmtap top %s … CONFIG -- COMMAND", word);
	}
	because(refusal, "top takes one activity, one CONFIG or one FILE, and a COMMAND behind --");
	return instead(refusal, "nhmtap top -- COMMAND; nhmtap top mem -- COMMAND; nhmtap top FILE");
}

/* The first given option that would say what to measure, or, if there is nothing to keep, where to keep it.
 * NULL: there is none. */
static const char *idle_option(const struct options *options, const char *record)
{
	const struct {
		const char *name;
		bool given;
	} all[] = {{"--record", record},	{"-e", options->events},
		   {"-c", options->period},	{"-F", options->frequency},
		   {"-p", options->pids},	{"-t", options->tids},
		   {"-G", options->cgroups},	{"--container", options->containers},
		   {"-C", options->cpus},	{"-a", options->all_cpus},
		   {"-I", options->interval_ms}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].given)
			return all[i].name;
	return NULL;
}

/* Options that would do nothing: records of others are shown as they are, and a CONFIG says itself what it
 * measures. */
static int check_idle(const struct options *options, bool config, struct refusal *refusal)
{
	const struct top_options *own = options->own;
	const char *name = idle_option(options, config ? NULL : own->record);

	if (!name)
		return 0;
	refuse(refusal, STATUS_USAGE, "option %s of top %.200s", name, options->rest[0]);
	because(refusal, config ? "CONFIG says what is measured" : "these records are shown as they are");
	if (config)
		return instead(refusal, "write it into CONFIG: nhmtap schema config shows its members");
	return instead(refusal, strcmp(name, "--record") ? "leave it out"
							 : "keep a copy: … | tee FILE | nhmtap top -");
}

/* The emulated machine can't write into the FIFO that an activity of top writes to. */
static int check_machine(const struct options *options, struct refusal *refusal)
{
	for (int i = 0; i < options->nr_rest && strcmp(options->rest[i], "--"); i++)
		if (!strcmp(options->rest[i], "--machine") || !strncmp(options->rest[i], "--machine=", 10)) {
			refuse(refusal, STATUS_USAGE, "option %s of top %s", options->rest[i],
			       options->rest[0]);
			because(refusal, "top reads what the emulated machine writes from stdin alone");
			return instead(refusal, "nhmtap %s %s … -- COMMAND | nhmtap top -", options->rest[0],
				       options->rest[i]);
		}
	return 0;
}

/* Its keys would be taken for records, so that none would end top. */
static int refuse_terminal(struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "top -");
	because(refusal, "stdin is a terminal, from which no records come");
	return instead(refusal, "nhmtap mem --machine -- COMMAND | nhmtap top -");
}

/* Begins to measure, or reads the file, as the words say. */
static int begin_run(struct top_run *run, const struct options *options, json_t **config,
		     struct refusal *refusal)
{
	const struct top_options *own = options->own;
	struct feed_wanted wanted = {options, own->record, options->rest, options->nr_rest, false, NULL};
	bool command = options->nr_rest && !strcmp(options->rest[-1], "--");
	const char *first = options->nr_rest && !command ? options->rest[0] : NULL;
	const struct command *known = first ? command_find(first) : NULL;

	wanted.activity = known && known->activity;
	if (wanted.activity && check_machine(options, refusal))
		return -1;
	if (first && !wanted.activity && !*config) {
		if (options->nr_rest > 1)
			return refuse_words(options->rest[1], refusal);
		if (check_idle(options, false, refusal))
			return -1;
		if (strcmp(first, "-"))
			return read_replayed(run, first, options->quiet, refusal);
		if (isatty(STDIN_FILENO))
			return refuse_terminal(refusal);
		feed_from_stdin(&run->feed);
		run->feeding = run->piped = true;
		return 0;
	}
	if (*config) {
		wanted.config = *config;
		if (options->nr_rest > 1 && strcmp(options->rest[1], "--"))
			return refuse_words(options->rest[1], refusal);
		if (check_idle(options, true, refusal))
			return -1;
		wanted.words += options->nr_rest > 1 ? 2 : 1;
		wanted.nr_words -= options->nr_rest > 1 ? 2 : 1;
	}
	run->own_config = !*config && !wanted.activity;
	if (feed_start(&run->feed, &wanted, refusal))
		return -1;
	run->feeding = true;
	return 0;
}

static bool is_stored(const struct options *options, const json_t *config)
{
	bool word = options->nr_rest && strcmp(options->rest[-1], "--") && strcmp(options->rest[0], "-");
	const struct command *known = word ? command_find(options->rest[0]) : NULL;

	return word && !config && !(known && known->activity);
}

static int run(const struct options *options, struct refusal *refusal)
{
	bool word = options->nr_rest && strcmp(options->rest[-1], "--");
	json_t *config = word ? read_as_config(options->rest[0]) : NULL;
	struct top_run run = {.keys = -1};
	bool utf8 = false;
	int status = 0;

	/* The file is read before the screen begins, which shows what is refused as any command does. */
	if (terminal_screen.open(&utf8, &run.keys, refusal)) {
		json_decref(config);
		return refusal->status;
	}
	run.open = true;
	run.model = top_new(is_stored(options, config), utf8);
	if (begin_run(&run, options, &config, refusal))
		status = refusal->status;
	else
		status = show_screen(&run, refusal);
	if (run.open)
		terminal_screen.close();
	if (run.feeding)
		feed_end(&run.feed);
	top_release(run.model);
	free(run.said.bytes);
	json_decref(config);
	return status;
}

static const struct option_row rows[] = {
	{0, "record", "FILE", OPTION_TEXT, OWN(struct top_options, record), .again = AGAIN_REFUSED,
	 .help = "keep the records in FILE, which nhmtap top FILE shows again"},
	{'I', "interval", "MS", OPTION_NUMBER, COMMON(interval_ms), .least = 1, .most = 86400000,
	 .help = "show an interval every MS milliseconds (default 1000)"},
	{0},
};

static const struct command top_command = {
	.name = "top",
	.arguments = "[OPTIONS] [FILE | CONFIG | ACTIVITY [ITS OPTIONS]] [-- COMMAND …]",
	.help = "shows what is measured on a screen while it goes on (by default, what runs hot), or "
		"replays stored records",
	.options = {rows, event_rows, sampling_rows, target_rows, quiet_rows, help_rows},
	.own_size = sizeof(struct top_options),
	.stops_at_word = true,
	.run = run,
};
REGISTER_COMMAND(top_command);
