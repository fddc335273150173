/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A profile in the Firefox Profiler's processed format while it is gathered: threads with their samples,
 * counters, and markers of loads, each in a span of time. Memory is bounded: if there are too many rows, each
 * two neighbouring spans become one, and what is equal in them is summed up. So sums stay, and the time
 * becomes coarser. Stacks that are new when there are too many go to "[others]".
 */
#pragma once

#include <stdbool.h>
#include <jansson.h>
#include <linux/types.h>

#include "output/calls.h"

struct fox;

struct fox *fox_new(void);
void fox_release(struct fox *fox);

/* Whether nothing was gathered. */
bool fox_is_empty(const struct fox *fox);

/* Chooses the span that what follows is in, in ns since 1970. A moment is a span without length. */
void fox_choose_time(struct fox *fox, __u64 since_ns, __u64 until_ns);

/* Texts are borrowed. */
struct fox_owner {
	const char *event; /* key of an event: threads of different events are different ones */
	const char *label; /* the event's name, which the thread has where the profile has several */
	const char *name;
	json_int_t pid, tid; /* 0: not known */
	bool clock;	     /* weights are ns, and are written as ms */
};

/* A sample: its thread, its frames from the outermost to the innermost, and its weight. One without a weight
 * adds nothing. */
void fox_begin_sample(struct fox *fox, const struct fox_owner *owner);
void fox_push(struct fox *fox, const struct step *step);
void fox_end_sample(struct fox *fox, double weight);

/* Adds to a counter. `key` tells it from others of its name. */
void fox_count(struct fox *fox, const char *key, const char *name, const char *description, double value);

/* Adds loads from a source. Their latencies are in core cycles. */
void fox_loads(struct fox *fox, const char *source, double samples, double period, double latency_sum,
	       double latency_max);

/* Adds something that limits how far the profile can be trusted. Equal ones are told once. */
void fox_remark(struct fox *fox, const char *title, const char *text);

/* The profile as a value, a new reference. `interval_ms` is the distance of two samples. */
json_t *fox_value(const struct fox *fox, const char *title, double interval_ms);
