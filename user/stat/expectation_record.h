/* SPDX-License-Identifier: GPL-2.0-only */
/* The result of an expectation, as a record. */
#pragma once

#include <jansson.h>

#include "base/status.h"
#include "metric/expectation.h"

/* The value that is compared. */
struct expected_finding {
	bool there;	    /* whether there is a value */
	double value;	    /* in the event's or metric's unit */
	struct bound bound; /* the bound of the value, in the same unit */
	const char *unit;   /* "" for a plain number */
	const char *why;    /* why there is no value */
};

/* The exit status that an outcome asks for. A session's is the largest. */
enum status expectation_status(enum outcome outcome);

/* Makes the record, except for its time, and sets the outcome. Returns a new reference. */
json_t *expectation_record(const struct expectation *expectation, const struct expected_finding *finding,
			   enum outcome *outcome);
