// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap machine: runs a command on the emulated machine, as if it ran here. The machine's driver does the
 * work: machine/run. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "command/machine_place.h"
#include "option/command.h"
#include "option/models.h"
#include "output/text.h"

struct machine_options {
	struct machine_kind kind;
	struct texts out;
	const char *forks;
	bool root, few_symbols, breakpoints, list;
};

/* Without a COMMAND the machine runs the caller's shell. */
static const char *shell(void)
{
	const char *named = getenv("SHELL");

	return named && *named ? named : "/bin/sh";
}

static void make_line(struct arguments *line, const struct options *options)
{
	const struct machine_options *own = options->own;

	driver_line_begin(line);
	driver_line_add_kind(line, &own->kind);
	arguments_add_option(line, "--user", own->root ? "root" : NULL);
	if (own->few_symbols)
		arguments_add(line, "--few-symbols");
	if (own->breakpoints)
		arguments_add(line, "--breakpoints");
	for (size_t i = 0; i < own->out.nr; i++)
		arguments_add_option(line, "--out", own->out.list[i]);
	arguments_add_option(line, "--forks", own->forks);
	arguments_add(line, "--");
	for (int i = 0; i < options->nr_rest; i++)
		arguments_add(line, options->rest[i]);
	if (!options->nr_rest)
		arguments_add(line, shell());
}

static int check_list(const struct options *options, struct refusal *refusal)
{
	if (!options->nr_rest)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --list with a command");
	because(refusal, "it only shows what there is");
	return instead(refusal, "leave out one of them");
}

static int check_out(const struct texts *out, struct refusal *refusal)
{
	for (size_t i = 0; i < out->nr; i++)
		if (!*out->list[i]) {
			refuse(refusal, STATUS_USAGE, "option --out ''");
			because(refusal, "it names nothing");
			return instead(refusal, "name a file or a folder that COMMAND makes");
		}
	return 0;
}

static void print_kinds(const struct machine_place *place, const char *model)
{
	struct text text = text_for_terminal(STDOUT_FILENO);
	char *lines;
	size_t size;
	FILE *file = xopen_memstream(&lines, &size);

	machine_print(place, model, file);
	xclose_memstream(file);
	text_add(&text, "%s", lines);
	text_print(&text, stdout);
	free(lines);
}

static int run(const struct options *options, struct refusal *refusal)
{
	const struct machine_options *own = options->own;
	struct machine_place place;
	struct arguments line;

	if ((own->kind.model && machine_check_model("--model", own->kind.model, refusal)) ||
	    (own->list && check_list(options, refusal)) || check_out(&own->out, refusal) ||
	    machine_find(&place, refusal))
		return refusal->status;
	if (own->list) {
		print_kinds(&place, own->kind.model);
		return STATUS_DONE;
	}
	if (machine_check_built(&place, "nhmtap machine", refusal) ||
	    machine_check_kind(&own->kind, &place, refusal))
		return refusal->status;
	make_line(&line, options);
	machine_execute(&place, &line, refusal);
	arguments_release(&line);
	return refusal->status;
}

static const struct option_row rows[] = {
	{0, "model", "NAME", OPTION_TEXT, OWN(struct machine_options, kind.model), .words = machine_models,
	 .help = "the processor (default ep, a Nehalem-EP); --list shows all"},
	{0, "cpus", "N", OPTION_NUMBER, OWN(struct machine_options, kind.cores), .least = 1,
	 .most = MACHINE_CORES_MOST, .help = "cores of a package (default 1)"},
	{0, "threads", "N", OPTION_NUMBER, OWN(struct machine_options, kind.threads), .least = 1,
	 .most = MACHINE_THREADS_MOST, .help = "threads of a core, 1 or 2 (default 1)"},
	{0, "packages", "N", OPTION_NUMBER, OWN(struct machine_options, kind.packages), .least = 1,
	 .most = MACHINE_PACKAGES_MOST, .help = "packages, 1 or 2 (default 1)"},
	{0, "kernel", "NAME|FILE", OPTION_TEXT, OWN(struct machine_options, kind.kernel),
	 .help = "a kernel that is built (default 6.1), or a bzImage or vmlinux"},
	{0, "memory", "MIB", OPTION_NUMBER, OWN(struct machine_options, kind.memory),
	 .least = MACHINE_MEMORY_LEAST, .most = MACHINE_MEMORY_MOST,
	 .help = "its memory (default 2048); below 512 there are no transparent huge pages, above 2048 it is "
		 "slow"},
	{0, "date", "SECONDS|now|today", OPTION_TEXT, OWN(struct machine_options, kind.date),
	 .help = "its clock at boot: seconds since 1970, this moment, or the last midnight (default "
		 "2030-01-01, so that each day's runs are the same)"},
	{0, "vary", "NUMBER", OPTION_TEXT, OWN(struct machine_options, kind.vary),
	 .help = "vary addresses, random numbers, pids and the clock's ticks by NUMBER (default: the same in "
		 "all runs, and no random addresses)"},
	{0, "ips", "N", OPTION_NUMBER, OWN(struct machine_options, kind.ips), .least = MACHINE_IPS_LEAST,
	 .most = MACHINE_IPS_MOST,
	 .help = "a clock of N instructions a second, whatever they cost, for programs that work until "
		 "seconds "
		 "have passed (default: the processor's clock)"},
	{0, "no-snapshot", NULL, OPTION_FLAG, OWN(struct machine_options, kind.no_snapshot),
	 .help = "boot: continue from no snapshot of a booted machine, and save none"},
	{0, "out", "PATH", OPTION_TEXTS, OWN(struct machine_options, out),
	 .help = "copy this file or folder back to this host afterwards; other changes are lost; repeatable"},
	{0, "root", NULL, OPTION_FLAG, OWN(struct machine_options, root),
	 .help = "run COMMAND as root of the machine, which may read no more of this host's files than you"},
	{0, "forks", "SOCKET", OPTION_TEXT, OWN(struct machine_options, forks),
	 .help = "run COMMAND up to where it waits, and then in a fork of the machine for each client of "
		 "SOCKET, as pytest does"},
	{0, "few-symbols", NULL, OPTION_FLAG, OWN(struct machine_options, few_symbols),
	 .help = "let perf's commands start some seconds earlier: /proc/kallsyms has two lines, and the "
		 "kernel's code no names"},
	{0, "breakpoints", NULL, OPTION_FLAG, OWN(struct machine_options, breakpoints),
	 .help = "let debuggers and uprobes that COMMAND starts set breakpoints in programs of this host; "
		 "reading files takes the machine time then"},
	{0, "list", NULL, OPTION_FLAG, OWN(struct machine_options, list),
	 .help = "show the models, the kernels, and the events that the model counts"},
	{0},
};

static const struct command machine = {
	.name = "machine",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "runs a command, or a shell, on the emulated machine: a Nehalem with a PMU, exact and "
		"repeatable",
	.options = {rows, help_rows},
	.own_size = sizeof(struct machine_options),
	.stops_at_word = true,
	.run = run,
};
REGISTER_COMMAND(machine);
