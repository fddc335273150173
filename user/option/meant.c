// SPDX-License-Identifier: GPL-2.0-only
#include "option/meant.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/list.h"
#include "base/nearest.h"
#include "option/option.h"

struct counterpart {
	const char
		*perf; /* a command of perf(1), or an option of perf-record(1) or perf-stat(1); version 6.1 */
	const char *here;
};

static const struct counterpart commands[] = {
	{"annotate", "nhmtap profile --annotate FUNCTION"},
	{"buildid-cache", "nhmtap symbolize"},
	{"c2c", "nhmtap mem --shared"},
	{"diff", "nhmtap show --diff A B, or nhmtap report A B"},
	{"record", "nhmtap profile"},
	{"script", "nhmtap profile, or nhmtap mem --stream"},
	{"top", "nhmtap profile -a --live"},
};

static const struct counterpart options[] = {
	{"--all-cgroups", "-a --per cgroup"},
	{"--branch-any", "nhmtap branch"},
	{"--branch-filter", "nhmtap branch"},
	{"--data", "nhmtap mem"},
	{"--field-separator", "--format flat"},
	{"--interval-print", "-I"},
	{"--metric-only", "-M"},
	{"--per-core", "--per core"},
	{"--per-node", "--per node"},
	{"--per-socket", "--per socket"},
	{"--per-thread", "--per thread"},
	{"--sort", "--by"},
	{"--timeout", "--duration"},
	{"--weight", "nhmtap mem"},
};

static const char *counterpart_find(const struct counterpart *list, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(list[i].perf, name))
			return list[i].here;
	return NULL;
}

/* Names a counterpart if there is one, else the nearest names with `before` before each, else where all names
 * are listed. */
static int propose(const char *counterpart, const struct nearest *nearest, const char *before,
		   const char *all, struct refusal *refusal)
{
	char near[160] = "", name[64];

	if (counterpart)
		return instead(refusal, "use %s", counterpart);
	for (int i = 0; i < nearest->most && nearest->best[i].name; i++) {
		snprintf(name, sizeof(name), "%s%s", before, nearest->best[i].name);
		list_append(near, sizeof(near), name);
	}
	if (*near)
		return instead(refusal, "did you mean %s?", near);
	return instead(refusal, "see %s", all);
}

int meant_command(const char *name, struct refusal *refusal)
{
	const struct command *command;
	struct nearest nearest;

	nearest_begin(&nearest, name, 2);
	for (size_t i = 0; (command = command_at(i)); i++)
		nearest_offer(&nearest, command->name);
	refuse(refusal, STATUS_USAGE, "'%s'", name);
	because(refusal, "there is no such command");
	return propose(counterpart_find(commands, ARRAY_SIZE(commands), name), &nearest, "", "nhmtap --help",
		       refusal);
}

struct offered {
	struct nearest nearest;
	const char *counterpart; /* of perf's option that was written */
	bool has_counterpart;	 /* the command has the option that it begins with */
	int begin_so;		 /* the number of options that begin with what was written */
};

/* Whether a counterpart begins with this option, as "-a --per cgroup" does with -a. */
static bool begins_with(const char *counterpart, const struct option_row *row)
{
	size_t length = strcspn(counterpart, " ");

	if (counterpart[0] != '-' || counterpart[1] != '-')
		return counterpart[0] == '-' && counterpart[1] == row->letter;
	return length - 2 == strlen(row->name) && !strncmp(counterpart + 2, row->name, length - 2);
}

static void offer_option(const struct option_row *row, void *context)
{
	struct offered *offered = context;

	if (offered->counterpart && begins_with(offered->counterpart, row))
		offered->has_counterpart = true;
	if (!row->help)
		return;
	nearest_offer(&offered->nearest, row->name);
	offered->begin_so += !strncmp(row->name, offered->nearest.wanted, strlen(offered->nearest.wanted));
}

int meant_option(const struct command *command, const char *text, struct refusal *refusal)
{
	struct offered offered = {.begin_so = 0};
	const char *counterpart;
	char name[64], all[64];
	bool is_long = !strncmp(text, "--", 2);

	refuse(refusal, STATUS_USAGE, "option '%s'", text);
	if (is_long && optopt) {
		because(refusal, "it takes no value");
		return instead(refusal, "leave the value out");
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "="), text);
	nearest_begin(&offered.nearest, is_long ? name + 2 : "", 4);
	offered.counterpart = counterpart = counterpart_find(options, ARRAY_SIZE(options), name);
	command_each_option(command, offer_option, &offered);
	/* getopt_long(3) takes the beginning of a name for the name if no other begins so. */
	if (is_long && offered.begin_so > 1)
		because(refusal, "%d options of nhmtap %s begin so", offered.begin_so, command->name);
	else
		because(refusal, "nhmtap %s has no such option", command->name);
	snprintf(all, sizeof(all), "nhmtap %s --help", command->name);
	if (counterpart && counterpart[0] == '-' && !offered.has_counterpart)
		counterpart = NULL;
	return propose(counterpart, &offered.nearest, "--", all, refusal);
}

int meant_values(char *const *words, int at, struct refusal *refusal)
{
	static const char *const ways[] = {"fp", "dwarf", "lbr"};
	const char *option = words[at - 1];

	if (!words[at] || (strcmp(option, "-g") && strcmp(option, "--call-graph")))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		if (strcmp(words[at], ways[i]))
			continue;
		refuse(refusal, STATUS_USAGE, "option %s with the value '%s'", option, ways[i]);
		because(refusal, "it takes none");
		return instead(refusal,
			       "leave the value out, or choose a way with --unwind; for a program of this "
			       "name: -- %s",
			       ways[i]);
	}
	return 0;
}
