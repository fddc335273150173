// SPDX-License-Identifier: GPL-2.0-only
#include "record/metric.h"

#include <math.h>
#include <stdlib.h>

#include "record/record.h"

/* Bytes of the longest text that the tables' form allows: 1000 characters. */
#define TEXT_MOST 4000

struct metric_input *metric_inputs(const struct metric *metric, const struct events *events,
				   const struct count *counts, __u64 duration_ns)
{
	struct metric_input *inputs = calloc(metric->formula.nr_inputs, sizeof(*inputs));

	for (size_t i = 0; i < metric->formula.nr_inputs; i++) {
		size_t event = metric->events[i];

		if (event == NO_EVENT) {
			inputs[i] = (struct metric_input){duration_ns, 1, true};
			continue;
		}
		inputs[i].enabled = counts[event].enabled_ns;
		if (!counts[event].running_ns)
			continue;
		inputs[i].value = count_scaled(&counts[event]) * events->list[event].scale;
		inputs[i].running_share = (double)counts[event].running_ns / counts[event].enabled_ns;
	}
	return inputs;
}

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
		json_object_set_new(value, "value", is_event && event->scale != 1
							    ? value_real(input->value)
							    : json_integer(llround(input->value)));
	if (is_event)
		json_object_set_new(value, "running_share", value_real(input->running_share));
	return value;
}

/* Whether the inputs are of one group, and so speak of the same time. */
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
		      const struct metric_input *inputs)
{
	const struct known_metric *known = metric->known;
	json_t *record = json_pack("{s:s}", "type", "metric"), *list = json_array();
	double value, share = 1;
	char why[300];
	bool absent = metric_value(metric, inputs, &value, why, sizeof(why));

	for (size_t i = 0; i < metric->formula.nr_inputs; i++) {
		json_array_append_new(list, input_value(metric, events, i, &inputs[i]));
		share = fmin(share, inputs[i].running_share);
	}
	json_object_set_new(record, "metric", value_text(metric->name, TEXT_MOST));
	if (absent)
		json_object_set_new(record, "why", value_text(why, sizeof(why)));
	else
		json_object_set_new(record, "value", value_real(value));
	json_object_set_new(record, "unit", value_text(known->unit, TEXT_MOST));
	json_object_set_new(record, "description", value_text(known->description, TEXT_MOST));
	json_object_set_new(record, "formula", value_text(known->formula, TEXT_MOST));
	json_object_set_new(record, "running_share", value_real(share));
	json_object_set_new(record, "together", json_boolean(together(metric, events)));
	json_object_set_new(record, "inputs", list);
	return record;
}
