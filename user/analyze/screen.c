// SPDX-License-Identifier: GPL-2.0-only
/* The table of analyze: a bar for each share. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/account.h"
#include "analyze/again.h"
#include "analyze/measure.h"
#include "output/hints.h"
#include "output/rows.h"
#include "output/table.h"

#define BAR_WIDTH  25
#define NAME_WIDTH 24

/* Shares that are at most this are left out, if they are parts of others. */
#define SHOWN_LEAST 0.005

/* No more shares are named as one of the largest. */
#define TOLD_MOST 5

/* Shares beside the others are explained if they are more than this. */
#define TOLD_LEAST 0.5

static double real_of(const json_t *share, const char *name)
{
	return json_number_value(json_object_get(share, name));
}

/* Nothing has no sign: what is left of two shares may be a little less. */
static double percent_of(const json_t *share, const char *name)
{
	double percent = 100 * real_of(share, name);

	return fabs(percent) < 0.05 ? 0 : percent;
}

/* '#' as far as the share goes at least, '+' as far as it probably does, '-' as far as it can. */
static void add_bar(struct text *text, const json_t *share)
{
	char bar[BAR_WIDTH + 1];

	for (int i = 0; i < BAR_WIDTH; i++) {
		double at = (i + 0.5) / BAR_WIDTH;

		bar[i] = at < real_of(share, "low")	? '#'
			 : at < real_of(share, "share") ? '+'
			 : at < real_of(share, "high")	? '-'
							: ' ';
	}
	bar[BAR_WIDTH] = '\0';
	text_add(text, " %s ", bar);
}

/* With -v: the events behind a share, and what one of them costs. */
static void add_events(struct text *text, const json_t *share)
{
	const json_t *cost = json_object_get(share, "cost");
	json_t *event;
	size_t i;

	json_array_foreach(json_object_get(share, "events"), i, event)
		text_add(text, "%s%s", i ? ", " : "    # ", json_string_value(event));
	if (json_object_get(share, "events") && cost)
		text_add(text, ", %g cycles each, from %g to %g", real_of(cost, "usual"),
			 real_of(cost, "low"), real_of(cost, "high"));
	text_add(text, json_object_get(share, "events") ? "\n" : "");
}

/* Why a share is absent. A reason that is on the screen already, for another event, is not repeated. */
static void add_absence(struct text *text, const char *why)
{
	const char *reason = strstr(why, " was not counted: "); /* as metrics say it */

	if (reason && strstr(text->bytes, reason))
		text_add(text, " absent: %.*s was not counted either\n", (int)(reason - why), why);
	else
		text_add(text, " absent: %s\n", why);
}

static void add_share(struct text *text, const json_t *share, int depth)
{
	text_add(text, "%*s%-*s", 2 * depth, "", NAME_WIDTH - 2 * depth, string(share, "name"));
	if (!json_object_get(share, "share")) {
		add_absence(text, string(share, "why"));
		return;
	}
	text_add(text, " %6.1f%%", percent_of(share, "share"));
	add_bar(text, share);
	text_add(text, "%.1f to %.1f", percent_of(share, "low"), percent_of(share, "high"));
	if (json_object_get(share, "serial") && strcmp(string(share, "name"), "unexplained"))
		text_add(text, " (%.1f if nothing overlapped)", 100 * real_of(share, "serial"));
	text_add(text, "\n");
}

static bool is_small(const json_t *share)
{
	return json_object_get(share, "share") && fabs(real_of(share, "share")) < SHOWN_LEAST &&
	       real_of(share, "high") < SHOWN_LEAST;
}

/* Stored records may have few of the events. */
static bool is_not_in_records(const json_t *share)
{
	return strstr(string(share, "why"), NOT_IN_RECORDS);
}

/* Whether neither a share nor any part of it is in the records. */
static bool is_unknown(const json_t *shares, const json_t *share)
{
	bool parts = false;
	json_t *other;
	size_t i;

	if (json_object_get(share, "share") || is_not_in_records(share))
		return !json_object_get(share, "share");
	json_array_foreach(shares, i, other)
		if (!strcmp(string(other, "parent"), string(share, "name"))) {
			if (json_object_get(other, "share"))
				return false;
			parts |= is_not_in_records(other);
		}
	return parts;
}

static void add_unknown(struct text *text, const json_t *shares)
{
	const char *between = "not counted in these records: ";
	json_t *share;
	size_t i;

	json_array_foreach(shares, i, share)
		if (is_not_in_records(share)) {
			text_add(text, "%s%s", between, string(share, "name"));
			between = ", ";
		}
	text_add(text, *between == ',' ? "\n" : "");
}

static bool is_part(const json_t *share, const char *of, bool beside, int depth)
{
	return depth < TREE_DEPTH_MOST && !strcmp(string(share, "parent"), of) &&
	       !!json_object_get(share, "beside") == beside;
}

static void add_left_out(struct text *text, size_t nr)
{
	char parts[40];

	if (nr)
		text_add(text, "%s of less than %.1f%% %s left out\n",
			 row_counted(nr, "part", parts, sizeof(parts)), 100 * SHOWN_LEAST,
			 nr > 1 ? "are" : "is");
}

/* Adds the parts of a share, and theirs. Returns how many were left out. */
static size_t add_parts(struct text *text, const json_t *shares, const char *parent, bool beside,
			bool verbose, int depth)
{
	json_t *share;
	size_t i, left_out = 0;

	json_array_foreach(shares, i, share) {
		if (!is_part(share, parent, beside, depth) || is_unknown(shares, share))
			continue;
		if (is_small(share) && depth > 1) {
			left_out++;
			continue;
		}
		add_share(text, share, depth);
		if (verbose)
			add_events(text, share);
		left_out += add_parts(text, shares, string(share, "name"), false, verbose, depth + 1);
	}
	return left_out;
}

/* "next: nhmtap profile -e EVENT": on the machine on which the shares were measured. */
static void add_next(struct text *text, const char *line, const json_t *start)
{
	int command = strcspn(line, " ");

	text_add(text, "\n    next: nhmtap %.*s", command, line);
	hint_add_machine(text, start, " ", "");
	text_add(text, "%s", line + command);
}

/* What a share is, and what it usually means, which `told` has. */
static void add_meaning(struct text *text, const json_t *share, const json_t *told, const json_t *start)
{
	text_add(text, "  %s: %s.", string(share, "name"), string(share, "description"));
	if (*string(told, "meaning"))
		text_add(text, " %s.", string(told, "meaning"));
	if (*string(told, "locate"))
		add_next(text, string(told, "locate"), start);
	text_add(text, "\n");
}

/* Groups of events take turns within one execution, and what each misses widens the bounds. */
static void add_too_short(struct text *text, const json_t *record)
{
	json_t *share;
	size_t i;

	if (json_object_get(record, "executions"))
		return;
	json_array_foreach(json_object_get(record, "shares"), i, share)
		if (is_not_in_records(share))
			return;
	text_add(text, "The groups of events took turns, and the time was too short for that: measure for "
		       "longer, or run a COMMAND once for each group, without --once.\n");
}

static void add_verdict(struct text *text, const json_t *record, const json_t *start)
{
	const json_t *verdict = json_object_get(record, "verdict"),
		     *shares = json_object_get(record, "shares");
	size_t nr = json_array_size(verdict);
	json_t *one;
	size_t i;

	if (!nr) {
		text_add(text, "\nNo share could be measured.\n");
		return;
	}
	if (nr > TOLD_MOST) {
		text_add(
			text,
			"\nToo little is known to tell the largest: by their bounds, %zu shares may be it.\n",
			nr);
		add_too_short(text, record);
		return;
	}
	text_add(text, nr > 1 ? "\nThe largest is one of:\n" : "\nThe largest:\n");
	json_array_foreach(verdict, i, one)
		add_meaning(text, object_named(shares, string(one, "name")), one, start);
}

/* What is beside the shares is in no verdict, but tells more than it if it is most of the whole. */
static void add_beside(struct text *text, const json_t *shares, const json_t *start)
{
	const char *before = "\nMore than half, beside these:\n";
	json_t *share;
	size_t i;

	json_array_foreach(shares, i, share) {
		if (!json_object_get(share, "beside") || real_of(share, "low") <= TOLD_LEAST)
			continue;
		text_add(text, "%s", before);
		add_meaning(text, share, share, start);
		before = "";
	}
}

static void add_code(struct text *text, const json_t *code)
{
	char symbol[200], file[200];

	row_cell(json_object_get(code, "symbol") ? json_object_get(code, "symbol")
						 : json_object_get(code, "module"),
		 symbol, sizeof(symbol));
	text_add(text, "%s", symbol);
	if (!json_object_get(code, "file"))
		return;
	row_cell(json_object_get(code, "file"), file, sizeof(file));
	text_add(text, " %s:%lld", file, (long long)integer(code, "line"));
}

static void add_place(struct text *text, const json_t *place)
{
	text_add(text, "  %6.1f%%  ", 100 * real_of(place, "share"));
	add_code(text, place);
	if (json_object_get(place, "to")) {
		text_add(text, " -> ");
		add_code(text, json_object_get(place, "to"));
	}
	text_add(text, "\n");
}

/* "pairs: struct pair.low (/usr/bin/x)", as far as it is known. */
static void add_object(struct text *text, const json_t *object)
{
	const char *variable = string(object, "variable"), *type = string(object, "data_type"),
		   *field = string(object, "field"), *module = string(object, "data_module");

	text_add(text, "  %6.1f%%  data %s%s%s%s%s", 100 * real_of(object, "share"), variable,
		 *variable && *type ? ": " : "", type, *field ? "." : "", field);
	if (*module)
		text_add(text, *variable || *type ? " (%s)" : "%s", module);
	text_add(text, "\n");
}

/* Whether any of the objects has a name: of the rest, pages tell more. */
static bool has_names(const json_t *objects)
{
	json_t *object;
	size_t i;

	json_array_foreach(objects, i, object)
		if (json_object_get(object, "variable") || json_object_get(object, "data_type"))
			return true;
	return false;
}

/* What the loads of a share cost, as measured, and their data. */
static void add_data(struct text *text, const json_t *share)
{
	const json_t *cost = json_object_get(share, "cost");
	const json_t *objects = json_object_get(share, "objects");
	json_t *page, *object;
	size_t i;

	if (json_object_get(cost, "samples"))
		text_add(text, "  a load costs %.0f cycles, by %lld samples\n", real_of(cost, "usual"),
			 (long long)integer(cost, "samples"));
	if (integer(cost, "throttled"))
		text_add(text,
			 "  loads that come densely are missing among them: the kernel paused the sampling "
			 "%lld "
			 "times, because it sampled too often\n",
			 (long long)integer(cost, "throttled"));
	if (has_names(objects)) {
		json_array_foreach(objects, i, object)
			add_object(text, object);
		return;
	}
	json_array_foreach(json_object_get(share, "data"), i, page)
		text_add(text, "  %6.1f%%  page %s\n", 100 * real_of(page, "share"), string(page, "page"));
}

/* How far samples of an event that is not precise are from what they are of. */
static void add_distance(struct text *text, const char *by)
{
	const char *event = strstr(by, "profile -e ");
	size_t length;

	if (!event)
		return;
	event += strlen("profile -e ");
	length = strcspn(event, " ");
	if (!strncmp(event, "cycles", strlen("cycles")) && strchr(" :", event[strlen("cycles")]))
		text_add(text, "  no event tells the code of this share: these places have the cycles\n");
	else if (!memmem(event, length, ":p", strlen(":p")))
		text_add(text, "  the event is not precise: what it is of comes just before these places\n");
}

/* The code that the shares come from, as far as it was sampled. */
static void add_where(struct text *text, const json_t *shares)
{
	json_t *share, *place;
	size_t i, p;

	json_array_foreach(shares, i, share) {
		const json_t *sampled = json_object_get(share, "sampled");

		if (!sampled)
			continue;
		text_add(text, "\nwhere %s is, by %lld samples (%s):\n", string(share, "name"),
			 (long long)integer(sampled, "samples"), string(sampled, "by"));
		if (*string(sampled, "why"))
			text_add(text, "  not found: %s\n", string(sampled, "why"));
		if (integer(sampled, "throttled"))
			text_add(text, "  " PAUSED "\n", (long long)integer(sampled, "throttled"));
		if (json_object_get(share, "where"))
			add_distance(text, string(sampled, "by"));
		json_array_foreach(json_object_get(share, "where"), p, place)
			add_place(text, place);
		if (*string(sampled, "unannotated"))
			text_add(text, "  no code is shown: %s\n", string(sampled, "unannotated"));
		add_data(text, share);
	}
}

static void add_identities(struct text *text, const json_t *record)
{
	json_t *identity;
	size_t i;

	json_array_foreach(json_object_get(record, "identities"), i, identity)
		if (!strcmp(string(identity, "outcome"), "disagrees"))
			text_add(text,
				 "\nWARNING: counts that must agree do not: %s is %.3f against %.3f. The "
				 "shares that depend on them are withdrawn.\n",
				 string(identity, "name"), real_of(identity, "left"),
				 real_of(identity, "right"));
}

/* --- two compared ----------------------------------------------------------------------------- */

static bool is_compared(const json_t *shares)
{
	json_t *share;
	size_t i;

	json_array_foreach(shares, i, share)
		if (json_object_get(share, "before"))
			return true;
	return false;
}

/* The difference, how far it is from at least to at most, and whether it may be none. */
static void add_difference(struct text *text, const json_t *share, int depth)
{
	const json_t *before = json_object_get(share, "before");

	text_add(text, "%*s%-*s", 2 * depth, "", NAME_WIDTH - 2 * depth, string(share, "name"));
	if (!before) {
		text_add(text, " absent: %s\n",
			 *string(share, "why") ? string(share, "why") : "the first file has no such share");
		return;
	}
	text_add(text, " %6.1f%% %6.1f%% %+7.1f   %+.1f to %+.1f%s\n", 100 * real_of(before, "share"),
		 100 * real_of(share, "share"), 100 * (real_of(share, "share") - real_of(before, "share")),
		 100 * (real_of(share, "low") - real_of(before, "high")),
		 100 * (real_of(share, "high") - real_of(before, "low")),
		 json_is_true(json_object_get(share, "changed")) ? "" : "  ~ within the bounds");
}

static bool both_small(const json_t *share)
{
	const json_t *before = json_object_get(share, "before");

	return before && is_small(share) && is_small(before);
}

static void add_changed(struct text *text, const json_t *shares)
{
	const char *between = "\nChanged by more than the bounds: ";
	json_t *share;
	size_t i;

	json_array_foreach(shares, i, share) {
		if (!json_is_true(json_object_get(share, "changed")))
			continue;
		text_add(text, "%s%s", between, string(share, "name"));
		between = ", ";
	}
	text_add(text, *between == ',' ? ".\n" : "\nNo share has changed by more than the bounds.\n");
}

/* Adds the differences of a share's parts, and of theirs. Returns how many were left out. */
static size_t add_differences(struct text *text, const json_t *shares, const char *parent, bool beside,
			      int depth)
{
	json_t *share;
	size_t i, left_out = 0;

	json_array_foreach(shares, i, share) {
		if (!is_part(share, parent, beside, depth) || is_unknown(shares, share))
			continue;
		if (both_small(share))
			left_out++;
		else
			add_difference(text, share, depth);
		left_out += add_differences(text, shares, string(share, "name"), false, depth + 1);
	}
	return left_out;
}

static void comparison_table(struct text *text, const json_t *record)
{
	const json_t *shares = json_object_get(record, "shares");
	const char *whole = string(record, "whole");
	size_t left_out;

	text_add(text, "what changed in where the %s go, in percentage points (~ it may be nothing):\n\n",
		 whole);
	text_add(text, "%-*s  before     now  change   at least to at most\n", NAME_WIDTH, "");
	left_out = add_differences(text, shares, whole, false, 0);
	text_add(text, "beside:\n");
	left_out += add_differences(text, shares, whole, true, 0);
	add_left_out(text, left_out);
	add_unknown(text, shares);
	add_changed(text, shares);
}

static void analysis_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *shares = json_object_get(record, "shares");
	const char *whole = string(record, "whole");
	size_t left_out;
	char keys[ROW_NAME_MAX];

	row_time(text, stream, record);
	if (*row_name(record, keys, sizeof(keys)))
		text_add(text, "%s:\n", keys);
	if (is_compared(shares)) {
		comparison_table(text, record);
		return;
	}
	text_add(text, "where the %s go", whole);
	if (*string(record, "side"))
		text_add(text, ", in %s mode only", string(record, "side"));
	if (json_object_get(record, "executions"))
		text_add(text, ", over %lld executions", (long long)integer(record, "executions"));
	text_add(text, " (# at least, + probably, - at most):\n\n");
	left_out = add_parts(text, shares, whole, false, stream->verbose, 0);
	text_add(text, "beside:\n");
	left_out += add_parts(text, shares, whole, true, stream->verbose, 0);
	add_left_out(text, left_out);
	add_unknown(text, shares);
	if (json_object_get(record, "cores_shared"))
		text_add(text,
			 "two threads share a core here: while one uses it, the other may seem to stall\n");
	add_identities(text, record);
	add_verdict(text, record, stream->start);
	add_beside(text, shares, stream->start);
	add_where(text, shares);
}

REGISTER_TABLE(analysis, analysis_table);
