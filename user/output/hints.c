// SPDX-License-Identifier: GPL-2.0-only
#include "output/hints.h"

#include <string.h>

#include "base/array.h"
#include "output/member.h"
#include "tables/known_event.h"

struct hint {
	const char *command;
	const char *with;    /* an event that was counted, or a key of --by, that it takes; NULL: none */
	const char *without; /* one that makes it needless; NULL: none does */
	const char *text;
	bool by_shares; /* only CPUs with a tree of shares have it */
	bool stored;	/* it reads what is stored, and measures nothing */
	bool shared;	/* only where loads find lines modified by other cores */
};

#define OF_LINES                                                                                             \
	"nhmtap mem --shared says which lines other cores had modified, who loads them, and whether they "   \
	"share more than the line"

/* The first one that fits is told. */
static const struct hint hints[] = {
	{.command = "stat",
	 .with = "cycles",
	 .by_shares = true,
	 .text = "nhmtap analyze says what the cycles are spent on"},
	{.command = "stat", .text = "nhmtap profile, or profile -e EVENT, says in which functions"},
	{.command = "profile",
	 .with = "stack",
	 .stored = true,
	 .text = "with -o FILE, nhmtap report FILE makes a page with its flame graph"},
	{.command = "profile",
	 .with = "place",
	 .stored = true,
	 .text = "with -o FILE, nhmtap show --annotate FUNCTION FILE shows the code"},
	{.command = "profile", .text = "nhmtap profile -g says who calls them"},
	{.command = "mem", .shared = true, .text = OF_LINES},
	{.command = "mem", .without = "line", .text = "nhmtap mem --by line says in which lines"},
	{.command = "mem", .without = "type", .text = "nhmtap mem --by type says what data they load"},
	{.command = "branch",
	 .without = "line",
	 .text = "nhmtap branch --by line --sort mispredicted says which lines are guessed wrong"},
	{.command = "offcore", .text = "nhmtap mem --by line says which lines load from there"},
	{.command = "show", .shared = true, .text = OF_LINES},
	{.command = "show",
	 .with = "stack",
	 .stored = true,
	 .text = "nhmtap show --children FILE adds up what functions call"},
	{.command = "show",
	 .stored = true,
	 .text = "nhmtap report FILE > page.html makes a page of it to keep"},
	{.command = "show --diff",
	 .stored = true,
	 .text = "nhmtap report A B > page.html makes a page of both"},
};

/* Whether a list has an event of this name, whatever its modifiers. */
static bool has_event(const json_t *events, const char *wanted)
{
	size_t i, length = strlen(wanted);
	json_t *event;

	json_array_foreach(events, i, event) {
		const char *name = string(event, "name");

		if (!strncmp(name, wanted, length) && (!name[length] || name[length] == ':'))
			return true;
	}
	return false;
}

static bool has_member(const json_t *start, const char *wanted)
{
	return has_text(json_object_get(start, "by"), wanted) ||
	       has_event(json_object_get(start, "events"), wanted);
}

static bool has_shares(const json_t *start)
{
	const char *events = string(json_object_get(json_object_get(start, "host"), "cpu"), "events");

	for (size_t i = 0; i < nr_known_cpus; i++)
		if (!strcmp(known_cpus[i].name, events))
			return known_cpus[i].nr_shares;
	return false;
}

static bool fits_records(const struct hint *hint, const char *command, const json_t *start,
			 const struct sharing *sharing)
{
	return !strcmp(hint->command, command) && (!hint->with || has_member(start, hint->with)) &&
	       (!hint->without || !has_member(start, hint->without)) &&
	       (!hint->by_shares || has_shares(start)) && (!hint->shared || sharing_untold(sharing));
}

void hint_add_machine(struct text *text, const json_t *start, const char *before, const char *behind)
{
	const json_t *emulated = emulated_host(start);
	__u64 cpus = integer(json_object_get(start, "host"), "cpus_online");

	if (!emulated)
		return;
	text_add(text, "%s--machine=%s", before, string(emulated, "model"));
	if (cpus > 1)
		text_add(text, ",cpus=%llu", cpus);
	text_add(text, "%s", behind);
}

void hint_add(struct text *text, const char *command, const json_t *start, const struct sharing *sharing)
{
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		if (!fits_records(&hints[i], command, start, sharing))
			continue;
		text_add(text, "# next: ");
		if (!hints[i].stored)
			hint_add_machine(text, start, "with ", ", ");
		text_add(text, "%s\n", hints[i].text);
		return;
	}
}
