// SPDX-License-Identifier: GPL-2.0-only
#include "stat/metric_record.h"

#include <math.h>
#include <stdio.h>

#include "activity/why.h"
#include "record/bound.h"
#include "record/record.h"

/* Bytes of the longest text that the tables' form allows: 1000 characters. */
#define TEXT_MOST 4000

/* Gives the inputs in the order of the formula's. `inputs` must have room for all. */
static void find_inputs(const struct metric *metric, const struct events *events, const struct count *counts,
			__u64 duration_ns, struct metric_input *inputs)
{
	for (size_t i = 0; i < metric->formula.nr_inputs; i++) {
		const struct count *count;

		if (metric->events[i] == NO_EVENT) {
			inputs[i] = (struct metric_input){duration_ns, 1, true};
			continue;
		}
		count = &counts[metric->events[i]];
		inputs[i] = (struct metric_input){.enabled = count->enabled_ns};
		if (!count->running_ns)
			continue;
		inputs[i].value = count_scaled(count) * events->list[metric->events[i]].scale;
		inputs[i].running_share = (double)count->running_ns / count->enabled_ns;
	}
}

/* Says why the first of its events that was not counted was not, as the record of its count does. */
static void explain_absence(const struct metric *metric, const struct metric_sums *sums, char *why,
			    size_t size)
{
	char text[WHY_SIZE];

	for (size_t i = 0; i < metric->formula.nr_inputs; i++) {
		size_t event = metric->events[i];

		if (event == NO_EVENT || sums->counts[event].running_ns)
			continue;
		snprintf(why, size, "%s was not counted: %s", metric->formula.inputs[i],
			 why_not_counted(sums->activity, event, &sums->counts[event], text));
		return;
	}
}

int metric_of(const struct metric *metric, const struct events *events, const struct metric_sums *sums,
	      double *value, char *why, size_t size)
{
	struct metric_input inputs[metric->formula.nr_inputs];
	int err;

	find_inputs(metric, events, sums->counts, sums->duration_ns, inputs);
	err = metric_value(metric, inputs, value, why, size);
	if (err && why && sums->activity)
		explain_absence(metric, sums, why, size);
	return err;
}

/* --- the bound -------------------------------------------------------------------------------- */

struct estimated {
	const struct metric *metric;
	const struct events *events;
	__u64 duration_ns;
};

static int estimate(const void *what, const struct count *counts, double *value)
{
	const struct estimated *estimated = what;
	struct metric_sums sums = {.counts = counts, .duration_ns = estimated->duration_ns};

	return metric_of(estimated->metric, estimated->events, &sums, value, NULL, 0);
}

/* Takes from a bound what no value can be. One that was estimated to be more is not contradicted. */
static void cap(const struct metric *metric, double value, struct bound *bound)
{
	double most = fmax(metric->known->most, value);

	bound->capped = metric->known->most && bound->high > most;
	if (bound->capped)
		bound->high = most;
}

int metric_bound(const struct metric *metric, const struct events *events, const struct metric_sums *sums,
		 struct bound *bound)
{
	struct estimated estimated = {metric, events, sums->duration_ns};
	size_t places[metric->formula.nr_inputs], nr = 0;
	double value;

	for (size_t i = 0; i < metric->formula.nr_inputs; i++)
		if (metric->events[i] != NO_EVENT)
			places[nr++] = metric->events[i];
	if (bound_of(sums->turns, sums->counts, places, nr, estimate, &estimated, bound) ||
	    estimate(&estimated, sums->counts, &value))
		return -1;
	cap(metric, value, bound);
	return 0;
}

/* --- the record ------------------------------------------------------------------------------- */

static json_t *input_value(const struct metric *metric, const struct events *events, size_t i,
			   const struct metric_input *input)
{
	bool is_event = metric->events[i] != NO_EVENT;
	const struct event *event = is_event ? &events->list[metric->events[i]] : NULL;
	json_t *value = json_object();

	json_object_set_new(value, "event",
			    is_event ? value_text(event->name, sizeof(event->name))
				     : json_string(FORMULA_DURATION));
	if (input->running_share)
		json_object_set_new(value, "value",
				    is_event && event->scale != 1 ? value_real(input->value)
								  : json_integer(llround(input->value)));
	if (is_event)
		json_object_set_new(value, "running_share", value_real(input->running_share));
	return value;
}

/* Whether all inputs are in one group, so that they are counted during the same time. */
static bool together(const struct metric *metric, const struct events *events)
{
	const struct event *first = NULL;

	for (size_t i = 0; i < metric->formula.nr_inputs; i++) {
		const struct event *event;

		if (metric->events[i] == NO_EVENT)
			continue;
		event = &events->list[metric->events[i]];
		if (first && (event->group < 0 || event->group != first->group))
			return false;
		first = event;
	}
	return true;
}

json_t *metric_record(const struct metric *metric, const struct events *events,
		      const struct metric_sums *sums)
{
	const struct known_metric *known = metric->known;
	struct metric_input inputs[metric->formula.nr_inputs];
	struct bound bound;
	json_t *record = json_pack("{s:s}", "type", "metric"), *list = json_array();
	double value, share = 1;
	char why[WHY_SIZE + 100];
	bool absent;

	find_inputs(metric, events, sums->counts, sums->duration_ns, inputs);
	absent = metric_of(metric, events, sums, &value, why, sizeof(why));
	for (size_t i = 0; i < metric->formula.nr_inputs; i++) {
		json_array_append_new(list, input_value(metric, events, i, &inputs[i]));
		share = fmin(share, inputs[i].running_share);
	}
	json_object_set_new(record, "metric", value_text(metric->name, TEXT_MOST));
	if (absent)
		json_object_set_new(record, "why", value_text(why, sizeof(why)));
	else
		json_object_set_new(record, "value", value_real(value));
	if (!absent && share < 1 && !metric_bound(metric, events, sums, &bound))
		json_object_set_new(record, "bound", bound_value(&bound));
	json_object_set_new(record, "unit", value_text(known->unit, TEXT_MOST));
	json_object_set_new(record, "description", value_text(known->description, TEXT_MOST));
	json_object_set_new(record, "formula", value_text(known->formula, TEXT_MOST));
	json_object_set_new(record, "running_share", value_real(share));
	json_object_set_new(record, "together", json_boolean(together(metric, events)));
	json_object_set_new(record, "inputs", list);
	return record;
}
