/* SPDX-License-Identifier: GPL-2.0-only */
/* Expectations of counts and metrics: "ipc>0.8", "page-faults<=10k", "task-clock<20ms". Pure. */
#pragma once

#include "base/refusal.h"
#include "metric/bound.h"

struct expectation {
	const char *text; /* the user's text; owned by the caller */
	char name[160];	  /* of the metric or event */
	enum comparison { LESS, AT_MOST, MORE, AT_LEAST, EQUAL } comparison;
	double limit;	 /* if is_time, in nanoseconds */
	bool is_time;	 /* the limit was written with a unit of time: "10ms" */
	bool is_percent; /* the limit was written in percent: "20%" */
	bool of_metric;
	size_t place; /* index of the metric or event in the plan */
};

struct expectations {
	struct expectation *list;
	size_t nr;
};

enum outcome { MET, FAILED, CANNOT_TELL };

/* Parses the text, without of_metric and place, and appends it to the list, which the caller frees. Returns
 * the expectation, valid until the next one is appended, or NULL with the refusal. */
struct expectation *expectations_add(struct expectations *expectations, const char *text,
				     struct refusal *refusal);

/* The operator of the comparison: "<=". */
const char *expectation_operator(const struct expectation *expectation);

/* MET if it holds everywhere within the bound, FAILED if it holds nowhere, else CANNOT_TELL. */
enum outcome expectation_outcome(const struct expectation *expectation, const struct bound *bound);
