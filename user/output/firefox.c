// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile for the Firefox Profiler: see output/firefox_profile.h. It is gathered from the records of a
 * whole run, or, where each interval has a file of its own, of an interval. Each thread, or what else the
 * keys tell apart, is a thread there; what events count are counters; and the loads of each source are
 * markers with their latency.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "output/firefox_profile.h"
#include "output/member.h"
#include "output/profiles.h"
#include "output/remarks.h"

/* What a stream has gathered. */
struct fox_stream {
	struct fox *fox;
	double interval_ms; /* distance of two samples of the first event */
};

static struct fox_stream *firefox_gathering(struct stream *stream)
{
	struct fox_stream *own = stream->own;

	if (!own) {
		own = stream->own = xcalloc(1, sizeof(*own));
		own->fox = fox_new();
	}
	return own;
}

/* --- samples ---------------------------------------------------------------------------------- */

struct fox_entry {
	struct fox *fox;
	struct fox_owner owner;
	bool begun;
};

/* The first step of an entry is its owner. */
static void fox_step(void *of, const struct step *step)
{
	struct fox_entry *entry = of;

	if (entry->begun) {
		fox_push(entry->fox, step);
		return;
	}
	entry->owner.name = step->name;
	fox_begin_sample(entry->fox, &entry->owner);
	entry->begun = true;
}

static void take_entry(struct fox *fox, const struct fox_owner *owner, const struct calls *calls,
		       const json_t *entry, double weight)
{
	struct fox_entry taking = {.fox = fox, .owner = *owner};

	if (!weight)
		return;
	taking.owner.pid = integer(entry, "pid");
	taking.owner.tid = integer(entry, "tid");
	calls_walk(calls, entry, fox_step, &taking);
	fox_end_sample(fox, weight);
}

static void take_rest(struct fox *fox, const struct fox_owner *owner, double weight)
{
	struct fox_entry taking = {.fox = fox, .owner = *owner};

	if (!weight)
		return;
	fox_step(&taking, &(struct step){.name = "[others]"});
	fox_step(&taking, &(struct step){.name = "[others]"});
	fox_end_sample(fox, weight);
}

static void add_remark(void *to, const struct remark *remark)
{
	fox_remark(to, remark->title, remark->text);
}

static void choose_time(struct fox *fox, const json_t *record)
{
	__u64 since = moment(record, "start_time");

	fox_choose_time(fox, since, since + integer(record, "duration_ns"));
}

static void take_samples(struct stream *stream, struct fox_stream *own, const json_t *record)
{
	const struct measure *measures = measures_of(record);
	const json_t *event = profile_event(stream, record);
	const char *member = measures[measure_main(measures)].member;
	char *key = profile_event_key(stream, record);
	struct fox_owner owner = {.event = key, .label = string(record, "event")};
	json_t *entry;
	size_t i;

	owner.clock = recorded_clock(event) && !measures[measure_main(measures)].type;
	if (!own->interval_ms)
		own->interval_ms = owner.clock ? profile_period(event, NULL) / 1e6 : 1.0;
	choose_time(own->fox, record);
	json_array_foreach(json_object_get(record, "entries"), i, entry)
		take_entry(own->fox, &owner, &stream->calls, entry, integer(entry, member));
	take_rest(own->fox, &owner, integer(json_object_get(record, "rest"), member));
	remarks_of(record, add_remark, own->fox);
	free(key);
}

/* A single sample has its frames with it, and stands for as many as were left out. */
static void take_single(struct stream *stream, struct fox_stream *own, const json_t *record)
{
	const json_t *event = profile_event(stream, record);
	json_t *entry = json_copy((json_t *)record), *numbers = json_array();
	json_int_t every = integer(record, "every") ?: 1, latency = integer(record, "latency");
	double weight = every * real_member(record, "period", 1);
	char *key = profile_event_key(stream, record);
	struct fox_owner owner = {
		.event = key, .label = string(record, "event"), .clock = recorded_clock(event)};
	struct calls calls = {.defined = json_pack("{sO*}", "frames", json_object_get(record, "stack"))};
	__u64 at = moment(record, "sample_time");

	for (size_t i = 0; i < json_array_size(json_object_get(record, "stack")); i++)
		json_array_append_new(numbers, json_integer(i));
	json_object_set_new(entry, "stack", numbers);
	if (!own->interval_ms)
		own->interval_ms = owner.clock ? profile_period(event, NULL) / 1e6 : 1.0;
	fox_choose_time(own->fox, at, at);
	take_entry(own->fox, &owner, &calls, entry, weight);
	if (latency)
		fox_loads(own->fox, string(record, "source"), every, weight, latency * weight, latency);
	json_decref(entry);
	calls_release(&calls);
	free(key);
}

/* --- counters and loads ----------------------------------------------------------------------- */

static void take_count(struct stream *stream, struct fox *fox, const json_t *record)
{
	const json_t *count = json_object_get(record, "scaled") ?: json_object_get(record, "value");
	const char *event = string(record, "event");
	json_int_t nth = integer(record, "nth");
	char *key, *name, *about;

	if (!json_is_number(count))
		return;
	choose_time(fox, record);
	key = profile_event_key(stream, record);
	name = nth ? xasprintf("%s %lld", event, (long long)nth) : xstrdup(event);
	about = xasprintf("what %s counted%s%s", event, stream->activity ? " in " : "",
			  stream->activity ?: "");
	fox_count(fox, key, name, about, json_number_value(count));
	free(key);
	free(name);
	free(about);
}

static void take_sources(struct stream *stream, struct fox *fox, const json_t *record)
{
	json_t *source;
	size_t i;

	(void)stream;
	choose_time(fox, record);
	json_array_foreach(json_object_get(record, "sources"), i, source)
		if (integer(source, "latency_max"))
			fox_loads(fox, string(source, "source"), integer(source, "samples"),
				  integer(source, "period"), real_member(source, "latency_sum_period", 0),
				  integer(source, "latency_max"));
}

/* --- the format ------------------------------------------------------------------------------- */

static int take(struct stream *stream, const json_t *record)
{
	const char *type = string(record, "type");

	if (measures_of(record))
		take_samples(stream, firefox_gathering(stream), record);
	if (measures_of(record) || !strcmp(type, "count"))
		take_count(stream, firefox_gathering(stream)->fox, record);
	if (!strcmp(type, "mem"))
		take_sources(stream, firefox_gathering(stream)->fox, record);
	if (!strcmp(type, "sample"))
		take_single(stream, firefox_gathering(stream), record);
	return 0;
}

static void release(struct stream *stream)
{
	struct fox_stream *own = stream->own;

	if (!own)
		return;
	fox_release(own->fox);
	free(own);
	stream->own = NULL;
}

static int put_document(struct stream *stream)
{
	struct fox_stream *own = stream->own;
	char *title;
	int err;

	if (!own || fox_is_empty(own->fox))
		return 0;
	title = profile_title(stream);
	err = profile_put_json(stream, fox_value(own->fox, title, own->interval_ms ?: 1.0));
	free(title);
	release(stream);
	return err;
}

static const struct format firefox = {
	.name = "firefox",
	.help = "a profile for the Firefox Profiler (profiler.firefox.com); implies -g",
	.adds_up = true,
	.commands = COMMANDS_OF_STACKS ",stream",
	.keys = "stack",
	.whole = true,
	.media = "application/json",
	.write = take,
	.finish = put_document,
	.release = release,
};
REGISTER_FORMAT(firefox);
