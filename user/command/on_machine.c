// SPDX-License-Identifier: GPL-2.0-only
#include "command/on_machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/memory.h"
#include "command/machine_place.h"
#include "option/command.h"
#include "output/address.h"
#include "output/documents.h"
#include "run/config.h"

static int refuse_here(struct refusal *refusal, const char *what, const char *value, const char *why,
		       const char *remedy)
{
	refuse(refusal, STATUS_USAGE, "option --machine with %s '%.200s'", what, value);
	because(refusal, "%s", why);
	return instead(refusal, "%s", remedy);
}

/* --- what is of this host alone --------------------------------------------------------------- */

#define OWN_PROCESSES "the emulated machine has none of this host's processes"
#define OWN_CGROUPS   "the emulated machine has none of this host's cgroups"
#define BY_COMMAND    "measure a command: -- COMMAND"

/* Options whose values name something that only this host has. */
static const struct {
	size_t offset;
	const char *option, *why, *remedy;
} of_this_host[] = {
	{offsetof(struct options, pids), "--pid", OWN_PROCESSES, BY_COMMAND},
	{offsetof(struct options, tids), "--tid", OWN_PROCESSES, BY_COMMAND},
	{offsetof(struct options, cgroups), "--cgroup", OWN_CGROUPS, BY_COMMAND},
	{offsetof(struct options, each_cgroup), "--for-each-cgroup", OWN_CGROUPS, BY_COMMAND},
	{offsetof(struct options, containers), "--container", OWN_CGROUPS, BY_COMMAND},
	{offsetof(struct options, control), "--control",
	 "a FIFO of this host has no reader on the emulated machine",
	 "limit what is measured by --delay and --duration"},
	{offsetof(struct options, listen), "--listen", "nobody can connect to the emulated machine",
	 "write to stdout, or to a file with -o"},
};

static int check_options(const struct options *options, struct refusal *refusal)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_this_host); i++) {
		const char *value = *(const char *const *)((const char *)options + of_this_host[i].offset);

		if (value)
			return refuse_here(refusal, of_this_host[i].option, value, of_this_host[i].why,
					   of_this_host[i].remedy);
	}
	return 0;
}

/* --- outputs ---------------------------------------------------------------------------------- */

/* The path of a file that need not exist yet, from the root. */
static char *whole_path(const char *path)
{
	char *folder = path[0] == '/' ? NULL : getcwd(NULL, 0);
	char *whole = xasprintf("%s%s%s", folder ? folder : "", folder ? "/" : "", path);

	free(folder);
	return whole;
}

/* Adds an output that is a file to those that the driver writes back. What is below /dev is the machine's
 * own: the standard streams, which are passed on, and null. */
static int take_output(struct arguments *line, const char *path, struct refusal *refusal)
{
	static const char option[] = "--output", file[] = "write to stdout, or to a file with -o";
	struct stat stat_of;
	char *whole;

	if (!path || !strncmp(path, "/dev/", strlen("/dev/")))
		return 0;
	if (!strcmp(path, LISTEN))
		return refuse_here(refusal, option, path, "nobody can connect to the emulated machine", file);
	if (address_is(path) || address_is_url(path))
		return refuse_here(refusal, option, path,
				   "the emulated machine has no network and no socket of this host", file);
	if (documents_is_pattern(path))
		return refuse_here(refusal, option, path,
				   "files whose names are made on the emulated machine are not brought back",
				   "give one file, without %t");
	if (!stat(path, &stat_of) && !S_ISREG(stat_of.st_mode))
		return refuse_here(refusal, option, path,
				   "it is no regular file, which could be brought back", file);
	whole = whole_path(path);
	arguments_add_option(line, "--out", whole);
	free(whole);
	return 0;
}

static int take_outputs(struct arguments *line, const struct options *options, struct refusal *refusal)
{
	struct place_of_output place;

	for (size_t i = 0; i < options->outputs.nr; i++) {
		if (request_place(&place, options, options->outputs.list[i], refusal) ||
		    take_output(line, place.path, refusal))
			return -1;
	}
	return take_output(line, options->output, refusal);
}

/* --- CONFIG ----------------------------------------------------------------------------------- */

static int take_request(struct arguments *line, const struct request *request, struct refusal *refusal)
{
	const struct options whole = {.control = request->control, .listen = request->listen};

	if (check_options(&whole, refusal))
		return -1;
	for (size_t i = 0; i < request->nr_entries; i++)
		if (check_options(&request->entries[i]->options, refusal))
			return -1;
	for (size_t i = 0; i < request->nr_outputs; i++)
		if (take_output(line, request->outputs[i].path, refusal))
			return -1;
	return 0;
}

static int take_config(struct arguments *line, const struct options *options, struct refusal *refusal)
{
	struct request request = {0};
	int err = config_read(&request, options->rest[0], options->nr_rest > 2 ? options->rest + 2 : NULL,
			      false, refusal);

	if (!err)
		err = take_request(line, &request, refusal);
	request_release(&request);
	return err;
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool is_of(const struct texts *texts, const char *word)
{
	for (size_t i = 0; i < texts->nr; i++)
		if (texts->list[i] == word)
			return true;
	return false;
}

/* What the last --machine says. */
static int read_kind(const struct options *options, struct machine_kind *kind, struct refusal *refusal)
{
	const char *equals = strchr(options->machine.list[options->machine.nr - 1], '=');

	return equals ? machine_read_kind(equals + 1, kind, refusal) : 0;
}

static int take_program(struct arguments *line, struct refusal *refusal)
{
	char program[4096];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (length > 0) {
		program[length] = '\0';
		arguments_add(line, program);
		return 0;
	}
	refuse(refusal, STATUS_REFUSED, "option --machine");
	refusal->error = errno;
	because(refusal, "this program's path can't be read: %s", strerror(errno));
	return instead(refusal, "mount -t proc proc /proc");
}

/* On the machine nhmtap is run by root, who may measure everything. As root of the machine one may read no
 * more of this host's files than before. */
static int make_line(struct arguments *line, const struct machine_kind *kind, const struct options *options,
		     int argc, char **argv, struct refusal *refusal)
{
	bool config = !strcmp(options->command->name, "run") && options->nr_rest;

	driver_line_begin(line);
	driver_line_add_kind(line, kind);
	arguments_add_option(line, "--user", "root");
	if (check_options(options, refusal) || take_outputs(line, options, refusal) ||
	    (config && take_config(line, options, refusal)))
		return -1;
	arguments_add(line, "--");
	if (take_program(line, refusal))
		return -1;
	for (int i = 1; i < argc; i++)
		if (!is_of(&options->machine, argv[i]))
			arguments_add(line, argv[i]);
	return 0;
}

int on_machine(const struct options *options, int argc, char **argv, struct refusal *refusal)
{
	struct machine_kind kind = {0};
	struct arguments line = {0};
	struct machine_place place;

	if (!read_kind(options, &kind, refusal) && !make_line(&line, &kind, options, argc, argv, refusal) &&
	    !machine_find(&place, refusal) && !machine_check_built(&place, "option --machine", refusal) &&
	    !machine_check_kind(&kind, &place, refusal))
		machine_execute(&place, &line, refusal);
	arguments_release(&line);
	free(kind.text);
	return refusal->status;
}
