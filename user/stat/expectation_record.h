/* SPDX-License-Identifier: GPL-2.0-only */
/* What came of an expectation, as a record. */
#ifndef NHMTAP_EXPECTATION_RECORD_H
#define NHMTAP_EXPECTATION_RECORD_H

#include <jansson.h>

#include "metric/expectation.h"

/* What there is to compare. */
struct finding {
	bool there;	    /* there is a value */
	double value;	    /* in the event's or metric's unit */
	struct bound bound; /* the same */
	const char *unit;   /* "" for a plain number */
	const char *why;    /* there is none */
};

/* The record, but for its time, and its outcome. A new reference. */
json_t *expectation_record(const struct expectation *expectation, const struct finding *finding,
			   enum outcome *outcome);

#endif
