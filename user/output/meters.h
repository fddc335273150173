/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records as series of metrics: counters, gauges, histograms. Labels are the keys of series; the number of
 * series with labels that have no natural limit (functions, pids, addresses, cgroups) is bounded: where there
 * are too many, those go that had no value for an hour.
 */
#ifndef NHMTAP_METERS_H
#define NHMTAP_METERS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <jansson.h>
#include <linux/types.h>

#include "record/compact.h"
#include "record/record.h"

struct calls;

enum meter_kind { METER_COUNTER, METER_GAUGE, METER_HISTOGRAM, METER_INFO };

/* Latencies from 2^i up to twice as many are in bucket i; the last is open. */
#define METER_BUCKETS 16

struct meter_series {
	json_t *labels; /* {name: text or whole number} */
	char *text;	/* the same as a page has them, once it has; freed with the series */
	bool set;	/* it has a value */
	bool bounded;	/* it counts towards the limit */
	time_t used;	/* when it was asked for last, seconds of CLOCK_MONOTONIC */
	double number;	/* of a gauge, or of a counter with fractions */
	__u64 count;	/* of a counter, or of what is in a histogram */
	__u64 sum, buckets[METER_BUCKETS];
	/* Of a share: of the interval that began then. */
	__u64 part, whole;
	char since[TIME_TEXT];
};

struct meter {
	struct meter *next;
	enum meter_kind kind;
	char *name, *unit, *help; /* unit: "" if it has none */
	json_t *index;		  /* {labels as text: their place} */
	struct meter_series *series;
	size_t nr;
	bool whole; /* counts whole things */
};

struct meters {
	struct meter *families, **end;
	__u64 limit; /* series with labels that are bounded */
	__u64 used;
	time_t looked;	     /* for series that are not used any more; as above */
	double spent;	     /* CPU time of nhmtap itself, when counters began */
	struct compact text; /* labels that are looked for */
	bool entries;	     /* entries become series as well */
};

/* `series`: how many there may be of entries; 0: entries are none. To be released. */
struct meters *meters_new(__u64 series);
void meters_release(struct meters *meters);

/* Takes what a record says, of an activity (NULL: of none), and with these frames in its stacks. Returns
 * whether there was something. */
bool meters_take(struct meters *meters, const char *activity, const struct calls *calls,
		 const json_t *record);

/* Takes nhmtap's own cost so far, and its version. */
void meters_take_self(struct meters *meters);

/* Counters begin anew; a gauge without a new value since then is unset. */
void meters_begin_anew(struct meters *meters);

#endif
