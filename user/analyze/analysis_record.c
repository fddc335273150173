// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/analysis_record.h"

#include <string.h>

#include "base/list.h"
#include "base/visible.h"
#include "record/record.h"
#include "record/type.h"

static json_t *events_value(const struct tree *tree, const struct known_share *known)
{
	const struct formula *formula;
	json_t *list = json_array();

	if (known < tree->shares || known >= tree->shares + tree->nr_shares)
		return list;
	formula = &tree->formulas[known - tree->shares].formula;
	for (size_t i = 0; i < formula->nr_inputs; i++)
		json_array_append_new(list, json_string(formula->inputs[i]));
	return list;
}

static json_t *cost_value(const struct accounted_share *share)
{
	const struct cost_range *cost = &share->cost;
	json_t *value =
		json_pack("{s:f, s:f, s:f}", "low", cost->low, "usual", cost->usual, "high", cost->high);

	if (cost->samples) {
		json_object_set_new(value, "source",
				    json_string("measured in this run by the latency of loads"));
		json_object_set_new(value, "samples", json_integer(cost->samples));
		if (cost->throttled)
			json_object_set_new(value, "throttled", json_integer(cost->throttled));
	} else {
		put_text(value, "source", share->known->source);
	}
	return value;
}

static json_t *share_value_of(const struct tree *tree, const struct accounted_share *share)
{
	const struct known_share *known = share->known;
	json_t *value = json_pack("{s:s, s:s}", "name", known->name, "description", known->description);
	json_t *events = events_value(tree, known);

	put_text(value, "parent", known->parent);
	/* A verdict has these of the other shares. */
	if (known->beside) {
		json_object_set_new(value, "beside", json_true());
		put_text(value, "meaning", known->meaning);
		put_text(value, "locate", known->locate);
	}
	if (share->there) {
		json_object_set_new(value, "share", value_real(share->share));
		json_object_set_new(value, "low", value_real(share->low));
		json_object_set_new(value, "high", value_real(share->high));
	} else {
		json_object_set_new(value, "why", json_string(share->why));
	}
	if (share->there && share->serial != share->share)
		json_object_set_new(value, "serial", value_real(share->serial));
	if (json_array_size(events))
		json_object_set(value, "events", events);
	json_decref(events);
	if (known->estimated)
		json_object_set_new(value, "cost", cost_value(share));
	return value;
}

static json_t *shares_value(const struct tree *tree, const struct account *account)
{
	json_t *list = json_array();

	for (size_t i = 0; i < account->nr; i++)
		json_array_append_new(list, share_value_of(tree, &account->list[i]));
	return list;
}

static json_t *verdict_value(const struct account *account)
{
	json_t *list = json_array();

	for (size_t i = 0; i < account->nr_verdict; i++) {
		const struct known_share *known = account->list[account->verdict[i]].known;
		json_t *value = json_pack("{s:s}", "name", known->name);

		put_text(value, "meaning", known->meaning);
		put_text(value, "locate", known->locate);
		json_array_append_new(list, value);
	}
	return list;
}

static json_t *identities_value(const struct tree *tree, const struct checked_identity *checked)
{
	static const char *const outcomes[] = {
		[AGREES] = "agrees", [DISAGREES] = "disagrees", [UNKNOWN] = "not_counted"};
	json_t *list = json_array();

	for (size_t i = 0; i < tree->nr_identities; i++) {
		json_t *value = json_pack("{s:s, s:s}", "name", tree->identities[i].name, "outcome",
					  outcomes[checked[i].agreement]);

		if (checked[i].agreement != UNKNOWN) {
			json_object_set_new(value, "left", value_real(checked[i].left));
			json_object_set_new(value, "right", value_real(checked[i].right));
		}
		json_array_append_new(list, value);
	}
	return list;
}

json_t *analysis_record(const struct tree *tree, const struct account *account,
			const struct checked_identity *checked)
{
	json_t *record = json_pack("{s:s, s:s}", "type", "analysis", "whole", tree->shares[tree->whole].name);

	json_object_set_new(record, "verdict", verdict_value(account));
	json_object_set_new(record, "identities", identities_value(tree, checked));
	json_object_set_new(record, "shares", shares_value(tree, account));
	return record;
}

static const struct record_type analysis_type = {
	.name = "analysis",
	.list = "shares",
	.kept = {"cpu", "node", "socket", "core", "tid", "comm", "cgroup", "start_time", "duration_ns",
		 "merged", "cpus_missing", "cgroups_missing", "cgroups_late", "whole", "executions"},
};
REGISTER_RECORD(analysis_type);

struct expectation *share_expectation_add(struct expectations *expectations, const char *text,
					  struct refusal *refusal)
{
	struct expectation *expectation = expectations_add(expectations, text, refusal);

	if (!expectation)
		return NULL;
	expectation->of = OF_METRIC;
	if (expectation->is_percent)
		return expectation;
	refuse(refusal, STATUS_USAGE, "option --expect '%.200s'", text);
	because(refusal, "the limit of a share is in percent");
	instead(refusal, "write %% behind the number: 'memory_bound<20%%' is a fifth of the cycles");
	return NULL;
}

json_t *share_expectation_record(const struct expectation *expectation,
				 const struct expected_finding *finding, bool quiet, enum status *status)
{
	enum outcome outcome;
	json_t *record = expectation_record(expectation, finding, &outcome);

	if (outcome == CANNOT_TELL && finding->there)
		json_object_set_new(record, "why",
				    json_string("the limit is within the bounds of the share"));
	if (outcome != MET && !quiet)
		say(finding->there ? "nhmtap: %s %s: it is %.1f %%, from %.1f to %.1f"
				   : "nhmtap: %s %s: it was not measured",
		    outcome == FAILED ? "expected" : "cannot tell whether", expectation->text, finding->value,
		    finding->bound.low, finding->bound.high);
	if (expectation_status(outcome) > *status)
		*status = expectation_status(outcome);
	return record;
}
