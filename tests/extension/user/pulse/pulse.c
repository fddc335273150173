// SPDX-License-Identifier: GPL-2.0-only
/* An activity that the program does not have. It needs this folder, one file in bpf/, and a schema.
 * */
#include "activity/activity.h"
#include "activity/sampling.h"
#include "option/command.h"
#include "output/rows.h"
#include "output/table.h"
#include "record/type.h"

struct pulse_options {
	__u64 beat;
};

static int plan_pulse(struct plan *plan, const struct options *options, struct host *host,
		      struct refusal *refusal)
{
	const char *events = options->events ? options->events : "cpu-clock";

	return plan_sampling(plan, events, options, host, refusal) ? -1
								   : plan_check(plan, options, host, refusal);
}

static void put_beat(const struct activity *activity, const struct sampled *sampled, json_t *record)
{
	const struct pulse_options *own = activity->options->own;

	if (own->beat)
		json_object_set_new(record, "beat", json_integer(own->beat));
}

static int choose(struct activity *activity, struct refusal *refusal)
{
	static const struct activity_ops ops = SAMPLING_OPS(plan_pulse);
	static const struct sampling pulse = {
		.command = "pulse",
		.aggregation = "pulse",
		.default_keys = "cpu",
		.complete = put_beat,
	};

	activity->ops = &ops;
	activity->details = &pulse;
	return 0;
}

static const struct activity_type type = {choose, .records = "pulse"};

static const struct record_type pulse_record = {
	.name = "pulse",
	.list = "entries",
	.kept = {"event", "start_time", "duration_ns"},
};
REGISTER_RECORD(pulse_record);

static void pulse_table(struct text *text, const struct stream *stream, const json_t *record)
{
	const json_t *entries = json_object_get(record, "entries");
	struct whole whole = whole_of(entries, NULL);

	text_add(text, "pulse: ");
	rows_of_entries(text, entries, &whole);
}
REGISTER_TABLE(pulse, pulse_table);

static const struct option_row rows[] = {
	{0, "beat", "N", OPTION_NUMBER, OWN(struct pulse_options, beat), .least = 1, .most = 9,
	 .help = "a number of its own"},
	{0},
};

static const struct command pulse = {
	.name = "pulse",
	.arguments = "[OPTIONS] [-- COMMAND …]",
	.help = "an activity of a test",
	.options = {event_rows, sampling_rows, rows, target_rows, interval_rows, stream_rows, format_rows,
		    help_rows},
	.own_size = sizeof(struct pulse_options),
	.activity = &type,
};
REGISTER_COMMAND(pulse);
