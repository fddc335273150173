// SPDX-License-Identifier: GPL-2.0-only
#include "stat/expectation_record.h"

#include <string.h>

#include "record/bound.h"
#include "record/record.h"

static const char *const outcomes[] = {
	[MET] = "met",
	[FAILED] = "failed",
	[CANNOT_TELL] = "cannot_tell",
};

enum status expectation_status(enum outcome outcome)
{
	static const enum status statuses[] = {
		[MET] = STATUS_DONE,
		[FAILED] = STATUS_UNEXPECTED,
		[CANNOT_TELL] = STATUS_PARTIAL,
	};

	return statuses[outcome];
}

static json_t *text(const char *words)
{
	return value_text(words, strlen(words));
}

static const char *why_open(const struct expected_finding *finding)
{
	if (!finding->there)
		return finding->why;
	return finding->bound.turns ? "the limit is within what the estimate can be off by, which includes "
				      "what may have happened while it had no counter; count fewer events at "
				      "a time (:D keeps a counter for one), or for longer"
				    : "it shared its counter for too short a time, or had none for too long "
				      "at once, to say how far the estimate can be off";
}

json_t *expectation_record(const struct expectation *expectation, const struct expected_finding *finding,
			   enum outcome *outcome)
{
	json_t *record = json_pack("{s:s}", "type", "expectation");

	*outcome = finding->there ? expectation_outcome(expectation, &finding->bound) : CANNOT_TELL;
	json_object_set_new(record, "expectation", text(expectation->text));
	json_object_set_new(record, "outcome", json_string(outcomes[*outcome]));
	if (*outcome == CANNOT_TELL)
		json_object_set_new(record, "why", text(why_open(finding)));
	json_object_set_new(record, expectation->of == OF_EVENT ? "event" : "metric",
			    text(expectation->name));
	json_object_set_new(record, "operator", json_string(expectation_operator(expectation)));
	json_object_set_new(record, "limit", value_real(expectation->limit));
	if (*finding->unit)
		json_object_set_new(record, "unit", text(finding->unit));
	if (finding->there) {
		json_object_set_new(record, "value", value_real(finding->value));
		json_object_set_new(record, "bound", bound_value(&finding->bound));
	}
	return record;
}
