/* SPDX-License-Identifier: GPL-2.0-only */
/* A metric in an interval, as a record. */
#pragma once

#include <jansson.h>
#include <linux/types.h>

#include "activity/activity.h"
#include "metric/bound.h"
#include "metric/metric.h"

/* The counts of the plan's events in a period of time. */
struct metric_sums {
	const struct count *counts; /* one per event */
	const struct turns *turns;  /* the readings that they are the sums of */
	__u64 duration_ns;
	const struct activity *activity; /* that has counted; NULL: no reasons are asked for */
};

/* Computes the value. Returns 0, or -1 with the reason why there is none (`why` may be NULL). */
int metric_of(const struct metric *metric, const struct events *events, const struct metric_sums *sums,
	      double *value, char *why, size_t size);

/* Computes the bound of the value. Returns 0, or -1 if there is no value. */
int metric_bound(const struct metric *metric, const struct events *events, const struct metric_sums *sums,
		 struct bound *bound);

/* Makes the record, except for its time. If there is no value, it tells why. Returns a new reference. */
json_t *metric_record(const struct metric *metric, const struct events *events,
		      const struct metric_sums *sums);
