// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile for a compiler: how often each straight piece of a program's code ran and each of its
 * branches was taken, as llvm-profgen --unsymbolized-profile reads it with --use-offset=0 (its
 * PerfReader.cpp, readSampleCounters()):
 *
 *     number of ranges          2
 *     first-last:count          401000-401010:17
 *     number of branches        1
 *     from->to:count            401010->401000:16
 *
 * Addresses are those of the program's file, in hex without 0x.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/member.h"
#include "output/output.h"
#include "output/profiles.h"
#include "output/text.h"

static bool is_text(const json_t *object, const char *name, const char *text)
{
	return !strcmp(string(object, name), text);
}

/* The address of a place in the program's own code; 0 for any other. */
static __u64 address_of(const json_t *program, const json_t *place)
{
	const char *path = json_string_value(json_object_get(program, "path"));
	__u64 offset = hex_member(place, "offset");
	json_t *segment;
	size_t i;

	if (!path || !is_text(place, "module", path))
		return 0;
	json_array_foreach(json_object_get(program, "code"), i, segment) {
		__u64 from = hex_member(segment, "offset");
		__u64 size = json_integer_value(json_object_get(segment, "size"));

		if (offset >= from && offset - from < size)
			return hex_member(segment, "address") + offset - from;
	}
	return 0;
}

/* Adds the number of entries of this kind that lie in the program, then a line for each of them. */
static void add_entries(struct text *text, const json_t *record, const char *kind, const char *between,
			const char *count)
{
	const json_t *program = json_object_get(record, "program");
	struct text lines = {0};
	size_t i, nr = 0;
	json_t *entry;

	json_array_foreach(json_object_get(record, "entries"), i, entry) {
		__u64 from = address_of(program, json_object_get(entry, "from"));
		__u64 to = address_of(program, json_object_get(entry, "to"));

		if (!from || !to || !is_text(entry, "kind", kind))
			continue;
		nr++;
		text_add(&lines, "%llx%s%llx:%lld\n", from, between, to,
			 (long long)json_integer_value(json_object_get(entry, count)));
	}
	text_add(text, "%zu\n%s", nr, nr ? lines.bytes : "");
	free(lines.bytes);
}

/* The member of an entry that tells how often: the number of its branches if all stand for the same,
 * otherwise what they stand for. */
static const char *counted_member(const struct stream *stream, const json_t *record)
{
	const json_t *event = profile_event(stream, record);
	bool unequal = json_object_get(json_object_get(event, "attr"), "sample_freq") ||
		       json_object_get(record, "share");

	return unequal && !json_object_get(record, "trace") ? "period" : "count";
}

static int write_autofdo(struct stream *stream, const json_t *record)
{
	const char *count = counted_member(stream, record);
	struct text text = {0};
	int err;

	if (!is_text(record, "type", "branch"))
		return 0;
	if (!json_object_get(record, "program")) {
		stream->sink.error = ENODATA;
		stream->sink.why = "the program ended before it could be seen where its code lies";
		return -ENODATA;
	}
	add_entries(&text, record, "range", "-", count);
	add_entries(&text, record, "edge", "->", count);
	err = sink_put(&stream->sink, text.bytes, text.used);
	free(text.bytes);
	return err;
}

/* The format holds one program and one count for each branch. Refuses options that ask for more. */
static int check_autofdo(const struct stream *stream, const struct options *options, size_t nr_events,
			 struct refusal *refusal)
{
	bool several = options->pids && strchr(options->pids, ',');
	const char *other = options->by		   ? "--by"
			    : options->interval_ms ? "--interval"
			    : options->control	   ? "--control"
			    : options->top	   ? "--top"
			    : options->all_cpus	   ? "--all-cpus"
			    : options->cpus	   ? "--cpu"
			    : several		   ? "--pid of several processes"
						   : NULL;

	if (nr_events > 1 && options->events) { /* a trace has a clock beside it */
		refuse(refusal, STATUS_USAGE, "option --format autofdo with several events");
		because(refusal, "one profile has one count of each branch");
		return instead(refusal, "leave out -e, or name one event");
	}
	if (nr_events || !other)
		return 0;
	refuse(refusal, STATUS_USAGE, "option %s with --format autofdo", other);
	because(refusal, "an autofdo profile is of one program, whole, and for the whole run");
	return instead(refusal,
		       !strcmp(other, "--interval")
			       ? "leave it out (each activity of a CONFIG has one: run nhmtap branch by "
				 "itself); json takes it"
			       : "leave it out; json takes it");
}

static const struct format autofdo = {
	.name = "autofdo",
	.help = "a profile for a compiler, through llvm-profgen",
	.commands = "branch",
	.keys = "edge,range",
	.whole = true,
	.check = check_autofdo,
	.write = write_autofdo,
};
REGISTER_FORMAT(autofdo);
