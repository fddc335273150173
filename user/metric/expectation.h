/* SPDX-License-Identifier: GPL-2.0-only */
/* Expectations of counts, metrics and the elapsed time: "ipc>0.8", "page-faults<=10k", "elapsed<2s". Pure. */
#pragma once

#include "base/refusal.h"
#include "metric/bound.h"

struct expectation {
	const char *text; /* the user's text; owned by the caller */
	char name[160];	  /* of what is compared */
	enum comparison { LESS, AT_MOST, MORE, AT_LEAST, EQUAL } comparison;
	double limit;	 /* if is_time, in nanoseconds */
	bool is_time;	 /* the limit was written with a unit of time: "10ms" */
	bool is_percent; /* the limit was written in percent: "20%" */
	enum expected_of { OF_EVENT, OF_METRIC, OF_ELAPSED } of;
	size_t place; /* index of the metric or event in the plan */
};

struct expectations {
	struct expectation *list;
	size_t nr;
};

enum outcome { MET, FAILED, CANNOT_TELL };

/* Parses the text, without `of` and place, and appends it to the list, which the caller frees. Returns
 * the expectation, valid until the next one is appended, or NULL with the refusal. */
struct expectation *expectations_add(struct expectations *expectations, const char *text,
				     struct refusal *refusal);

/* The operator of the comparison: "<=". */
const char *expectation_operator(const struct expectation *expectation);

/* MET if it holds everywhere within the bound, FAILED if it holds nowhere, else CANNOT_TELL. */
enum outcome expectation_outcome(const struct expectation *expectation, const struct bound *bound);
