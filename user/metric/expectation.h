/* SPDX-License-Identifier: GPL-2.0-only */
/* What is expected of a count or a metric: "ipc>0.8", "page-faults<=1e4". Pure. */
#ifndef NHMTAP_EXPECTATION_H
#define NHMTAP_EXPECTATION_H

#include "metric/bound.h"
#include "refusal.h"

struct expectation {
	const char *text; /* as it was asked for; the caller's */
	char name[160];	  /* of the metric or event */
	enum comparison { LESS, AT_MOST, MORE, AT_LEAST, EQUAL } comparison;
	double limit;
	bool of_metric;
	size_t place; /* of the metric or event in the plan */
};

struct expectations {
	struct expectation *list;
	size_t nr;
};

enum outcome { MET, FAILED, CANNOT_TELL };

/* Parses the text: all but of_metric and place. Returns 0, or -1 with the refusal. */
int expectation_parse(struct expectation *expectation, const char *text, struct refusal *refusal);

/* The comparison as it is written: "<=". */
const char *expectation_operator(const struct expectation *expectation);

/* Whether it is met everywhere in the bound, nowhere in it, or undecided. */
enum outcome expectation_outcome(const struct expectation *expectation, const struct bound *bound);

#endif
