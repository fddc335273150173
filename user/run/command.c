// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap run CONFIG: a session with the activities of CONFIG. */
#include <string.h>

#include "base/note.h"
#include "base/visible.h"
#include "option/command.h"
#include "run/config.h"
#include "run/watch.h"

/* Options of `run` alone. */
struct run_options {
	bool check; /* --check */
	bool watch; /* --watch */
	bool print; /* --print-config */
};

static int print_config(const struct request *request)
{
	json_t *document = config_filled(request);

	json_dumpf(document, stdout, JSON_INDENT(2)); /* main() notices what could not be written */
	putchar('\n');
	json_decref(document);
	return STATUS_DONE;
}

static int run(const struct options *options, struct refusal *refusal)
{
	const struct run_options *own = options->own;
	struct request request = {0};
	struct apart watcher = {.socket = -1};
	int status;

	if (!options->nr_rest) {
		refuse(refusal, STATUS_USAGE, "nhmtap run");
		because(refusal, "CONFIG is missing");
		instead(refusal, "nhmtap schema config shows what it holds");
		return STATUS_USAGE;
	}
	if (options->nr_rest > 1 && strcmp(options->rest[1], "--")) {
		refuse(refusal, STATUS_USAGE, "argument '%s'", options->rest[1]);
		because(refusal, "run takes one CONFIG");
		instead(refusal, "options come before CONFIG, a command behind it: -- COMMAND");
		return STATUS_USAGE;
	}
	if (own->watch && !own->check && !own->print && !watch_begin(&watcher, options->rest[0]))
		say("nhmtap: there can be no process that watches CONFIG; SIGHUP reads it again");
	if (config_read(&request, options->rest[0], options->nr_rest > 2 ? options->rest + 2 : NULL,
			own->check, refusal)) {
		status = refusal->status;
	} else if (own->print) {
		status = print_config(&request);
	} else {
		request.watcher = &watcher;
		request.host_root = options->host_root;
		request.verbose = own->check || options->verbose;
		request.quiet = options->quiet;
		note_begin(options->verbose);
		status = run_session(&request, own->check ? NULL : config_read_again, refusal);
	}
	for (size_t i = 0; i < request.nr_found; i++)
		say_refusal(&request.found[i]);
	apart_leave(&watcher);
	request_release(&request);
	return status;
}

static const struct option_row rows[] = {
	{0, "check", NULL, OPTION_FLAG, OWN(struct run_options, check),
	 .help = "check CONFIG and show what would be opened; opens nothing and needs no privileges"},
	{0, "print-config", NULL, OPTION_FLAG, OWN(struct run_options, print),
	 .help = "print CONFIG as it is taken, with variables replaced and defaults filled in; opens "
		 "nothing"},
	{0, "watch", NULL, OPTION_FLAG, OWN(struct run_options, watch),
	 .help = "read CONFIG again when it has changed, as on SIGHUP"},
	{0},
};

static const struct command run_command = {
	.name = "run",
	.arguments = "[OPTIONS] CONFIG [-- COMMAND …]",
	.help = "runs all activities of CONFIG in one session, until it is told to end",
	.options = {rows, told_rows, host_rows, machine_rows, help_rows},
	.own_size = sizeof(struct run_options),
	.stops_at_word = true,
	.run = run,
};
REGISTER_COMMAND(run_command);
