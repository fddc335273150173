// SPDX-License-Identifier: GPL-2.0-only
#include "view/singles.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "output/member.h"

bool is_summed_up(struct summed_up *summed, const json_t *record)
{
	const char *type = string(record, "type"), *activity = string(record, "activity");

	if (!strcmp(type, "start")) {
		if (!summed->activities)
			summed->activities = json_object();
		json_object_set_new(summed->activities, activity,
				    json_boolean(!strcmp(string(record, "command"), "mem")));
	}
	return !strcmp(type, "sample") && json_is_true(json_object_get(summed->activities, activity));
}

void summed_up_release(struct summed_up *summed)
{
	json_decref(summed->activities);
	summed->activities = NULL;
}

/* The stack of the sample has its frames; those of records have numbers of frames. */
static void take_frames(const json_t *sample, json_t *entry, void (*take)(void *of, const json_t *record),
			void *of)
{
	json_t *numbers = json_array(), *frames = json_array(), *frame, *record;
	size_t i;

	json_array_foreach(json_object_get(sample, "stack"), i, frame) {
		json_t *numbered = json_copy(frame);

		json_object_set_new(numbered, "id", json_integer(i));
		json_array_append_new(frames, numbered);
		json_array_append_new(numbers, json_integer(i));
	}
	json_object_set_new(entry, "stack", numbers);
	record = json_pack("{ss sO* so}", "type", "frames", "event", json_object_get(sample, "event"),
			   "frames", frames);
	take(of, record);
	json_decref(record);
}

/* A product that stays at the highest number: records of others may have any numbers. */
static json_int_t times(json_int_t one, json_int_t other)
{
	json_int_t product;

	return __builtin_mul_overflow(one, other, &product) ? INT64_MAX : product;
}

/* What a latency adds to an entry, or to a source. */
static void add_latency(json_t *to, json_int_t latency, json_int_t samples, json_int_t period)
{
	char bound[32];

	snprintf(bound, sizeof(bound), "%lld", 1LL << ilogb(latency));
	json_object_set_new(to, "latency_sum", json_integer(times(latency, samples)));
	json_object_set_new(to, "latency_sum_period", json_integer(times(latency, period)));
	json_object_set_new(to, "latency_max", json_integer(latency));
	json_object_set_new(to, "latency_histogram", json_pack("{sI}", bound, samples));
	json_object_set_new(to, "latency_histogram_period", json_pack("{sI}", bound, period));
}

const char *single_type(const json_t *sample)
{
	return integer(sample, "latency") > 0 ? "mem" : "profile";
}

void single_take(const json_t *sample, void (*take)(void *of, const json_t *record), void *of)
{
	static const char *const kept[] = {"run_id", "activity", "event", "nth", "sample_time"};
	json_int_t samples = integer(sample, "every"), latency = integer(sample, "latency"), period;
	json_t *entry = json_copy((json_t *)sample), *record, *source;

	samples = samples > 0 ? samples : 1;
	period = times(samples, json_object_get(sample, "period") ? integer(sample, "period") : 1);
	json_object_set_new(entry, "samples", json_integer(samples));
	json_object_set_new(entry, "period", json_integer(period));
	if (json_object_get(sample, "stack"))
		take_frames(sample, entry, take, of);
	record = json_pack("{ss sO* si s{sI sI s{}}}", "type", single_type(sample), "start_time",
			   json_object_get(sample, "sample_time"), "duration_ns", 0, "samples", "expected",
			   samples, "aggregated", samples, "lost");
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		json_object_set(record, kept[i], json_object_get(sample, kept[i]));
	if (latency > 0) {
		add_latency(entry, latency, samples, period);
		source = json_pack("{ss sI sI}", "source", string(sample, "source"), "samples", samples,
				   "period", period);
		add_latency(source, latency, samples, period);
		json_object_set_new(record, "sources", json_pack("[o]", source));
	}
	json_object_set_new(record, "entries", json_pack("[o]", entry));
	take(of, record);
	json_decref(record);
}
