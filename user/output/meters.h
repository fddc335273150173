/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records as series of metrics: counters, gauges, histograms. The keys of an entry become labels. The number
 * of series is limited for labels without a natural limit (functions, pids, addresses, cgroups): once the
 * limit is reached, series that had no value for an hour are dropped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <jansson.h>
#include <linux/types.h>

#include "record/compact.h"
#include "record/record.h"

struct calls;

enum meter_kind { METER_COUNTER, METER_GAUGE, METER_HISTOGRAM, METER_INFO };

/* Bucket i holds latencies from 2^i to 2^(i+1) - 1; the last bucket holds all longer ones as well. */
#define METER_BUCKETS 16

struct meter_series {
	json_t *labels; /* {name: text or integer} */
	char *text;	/* the labels as the page shows them, made at first use; freed with the series */
	bool set;	/* it has a value */
	bool bounded;	/* it counts toward the limit */
	time_t used;	/* last use, seconds of CLOCK_MONOTONIC */
	__u64 begun;	/* start of the first interval that it has a value of, ns since 1970; 0: not known */
	/* The interval that its value is of, since it was last cleared, ns since 1970; 0: not known. */
	__u64 from, until;
	__u64 told;    /* the end of the last interval that was written, where the output keeps it */
	double number; /* value of a gauge, or of a counter with fractions */
	__u64 count;   /* value of a counter; number of values in a histogram */
	__u64 sum, buckets[METER_BUCKETS];
	char since[TIME_TEXT]; /* start of the interval that a gauge has its value of */
	__u64 part, whole;     /* sums for a gauge that is a share, in this interval */
};

struct meter {
	struct meter *next;
	enum meter_kind kind;
	char *name, *unit, *help; /* unit is "" if it has none */
	char *asked;		  /* what it is found by: its name, but for some metrics */
	bool metric;		  /* of a metric of the tables */
	json_t *index;		  /* {labels as text: index in `series`} */
	struct meter_series *series;
	size_t nr;
	bool whole; /* its values are integers */
};

struct text;

/* Adds words in the form of a metric name: "per 1000 instructions" → "per_1000_instructions", "%" →
 * "percent". */
void meter_add_words(struct text *name, const char *words);

/* The name of a family on a page, with its unit as the suffix. The caller frees it. */
char *meter_full_name(const char *name, const char *unit);

struct meters {
	struct meter *families, **end;
	__u64 limit; /* most series with labels without a natural limit */
	__u64 used;
	time_t looked;	     /* when unused series were last searched for, seconds of CLOCK_MONOTONIC */
	double spent;	     /* nhmtap's own CPU time in s when the counters began */
	struct compact text; /* buffer for the labels to look up */
	__u64 since, until;  /* the interval of the record that is being taken in; 0: it has none */
	bool entries;	     /* entries become series as well */
};

/* `series` is the limit of series for entries; with 0, entries do not become series. The caller calls
 * meters_release(). */
struct meters *meters_new(__u64 series);
void meters_release(struct meters *meters);

/* Takes in a record of an activity (NULL: of none). `calls` has the frames of its stacks. Returns whether the
 * record has any metrics. */
bool meters_take(struct meters *meters, const char *activity, const struct calls *calls,
		 const json_t *record);

/* Forgets the series of an activity's event ("" for no activity): another one gets its name. */
void meters_forget_event(struct meters *meters, const char *activity, const char *event);

/* Takes nhmtap's own cost so far, and its version. */
void meters_take_self(struct meters *meters);

/* Takes what says of all series what they are from: the emulated machine, if the start record is from one. */
void meters_take_host(struct meters *meters, const json_t *start);

/* Sets all counters back to 0. A gauge is not shown until it has a new value. */
void meters_begin_anew(struct meters *meters);

/* The same for gauges alone: counters go on. */
void meters_clear_gauges(struct meters *meters);
