/* SPDX-License-Identifier: GPL-2.0-only */
/* A metric in an interval, as a record. */
#ifndef NHMTAP_METRIC_RECORD_H
#define NHMTAP_METRIC_RECORD_H

#include <jansson.h>
#include <linux/types.h>

#include "metric/bound.h"
#include "metric/metric.h"

/* What the plan's events counted in some time. */
struct sums {
	const struct count *counts; /* an event's */
	const struct turns *turns;  /* how these came about */
	__u64 duration_ns;
};

/* The value. Returns 0, or -1 with the reason why there is none (why may be NULL). */
int metric_of(const struct metric *metric, const struct events *events, const struct sums *sums,
	      double *value, char *why, size_t size);

/* What the value can be off by. Returns 0, or -1 if there is none. */
int metric_bound(const struct metric *metric, const struct events *events, const struct sums *sums,
		 struct bound *bound);

/* The record, but for its time: a new reference. Without a value it says why. */
json_t *metric_record(const struct metric *metric, const struct events *events, const struct sums *sums);

#endif
