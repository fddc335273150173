/* SPDX-License-Identifier: GPL-2.0-only */
/* A metric in an interval, as a record. */
#ifndef NHMTAP_RECORD_METRIC_H
#define NHMTAP_RECORD_METRIC_H

#include <jansson.h>
#include <linux/types.h>

#include "collection/counters.h"
#include "metric/metric.h"

/* The inputs from what the plan's events counted in duration_ns, in the order of the formula's.
 * The caller frees the array. */
struct metric_input *metric_inputs(const struct metric *metric, const struct events *events,
				   const struct count *counts, __u64 duration_ns);

/* The record, but for its time: a new reference. Without a value it says why. */
json_t *metric_record(const struct metric *metric, const struct events *events,
		      const struct metric_input *inputs);

#endif
