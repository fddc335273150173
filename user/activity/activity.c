// SPDX-License-Identifier: GPL-2.0-only
#include "activity/activity.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/visible.h"
#include "host/processes.h"
#include "record/record.h"

__u64 activity_interval_ns(const struct activity *activity)
{
	return timespec_ns(&activity->interval_ended) - timespec_ns(&activity->interval_began);
}

double activity_share(const struct activity *activity)
{
	__u64 ns = activity_interval_ns(activity);

	return ns ? (double)(activity->spent - activity->spent_before) / ns : 0;
}

void activity_add_interval(const struct activity *activity, struct fields *fields, const char *start_time)
{
	fields_text(fields, "start_time", start_time, TIME_TEXT - 1);
	fields_number(fields, "duration_ns", activity_interval_ns(activity));
	if (activity->merged > 1)
		fields_number(fields, "merged", activity->merged);
}

void activity_add_event(struct fields *fields, const struct event *event, const json_t *name)
{
	fields_text(fields, "event", json_string_value(name), json_string_length(name));
	if (event->nth > 1)
		fields_number(fields, "nth", event->nth);
}

void activity_put_event(json_t *record, const struct event *event)
{
	json_object_set_new(record, "event", value_text(event->name, sizeof(event->name)));
	if (event->nth > 1)
		json_object_set_new(record, "nth", json_integer(event->nth));
}

void activity_put_interval(const struct activity *activity, json_t *record)
{
	struct fields fields;
	char start_time[TIME_TEXT];

	fields_begin(&fields);
	activity_add_interval(activity, &fields, time_text(&activity->interval_began_at, start_time));
	fields_put(&fields, record);
}

int activity_write(struct activity *activity, json_t *record)
{
	return session_write(activity->session, record, activity->name);
}

void activity_say(const struct activity *activity, const char *format, ...)
{
	bool named = !activity->session->alone;
	char text[MESSAGE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say("nhmtap: %s%s%s", named ? activity->name : "", named ? ": " : "", text);
}

int activity_write_fields(struct activity *activity, const char *type, struct fields *fields)
{
	int err = session_write_fields(activity->session, type, fields, activity->name);

	fields_clear(fields);
	return err;
}

int activity_attach_reader(struct activity *activity, struct refusal *refusal)
{
	if (activity->drain_ns || activity->options->interval_ms || activity->session->control.fd >= 0)
		counters_expect_readings(activity->counters);
	return 0;
}

pid_t activity_child(const struct activity *activity)
{
	return target_of_ids(&activity->plan.target) ? 0 : activity->session->child.pid;
}

bool activity_runs_already(const struct activity *activity)
{
	const struct target *target = &activity->plan.target;

	return target_of_ids(target) || (target_is_command(target) && activity->session->child.go_fd < 0);
}

int activity_open_counters(struct activity *activity, struct refusal *refusal)
{
	activity->forks = activity_runs_already(activity) ? proc_forks() : 0;
	return counters_open(&activity->counters, &activity->plan, activity_child(activity),
			     &activity->session->host, refusal);
}

bool activity_cut(const struct activity *activity)
{
	const struct target *target = &activity->plan.target;

	return target_of_ids(target) ? counters_taken(activity->counters)
				     : target_is_command(target) && child_cut(&activity->session->child);
}

bool activity_partial(const struct activity *activity)
{
	return activity->options->repeats && activity->session->ended_by;
}

void activity_detach_places(struct activity *activity, int cpu, int cgroup)
{
	const struct places *places = counters_places(activity->counters);

	for (size_t p = 0; p < places->nr && activity->ops->detach_at; p++)
		if (places->list[p].open && (cpu < 0 || places->list[p].cpu == cpu) &&
		    (cgroup < 0 || places->list[p].cgroup == cgroup))
			activity->ops->detach_at(activity, p);
}

int activity_join_place(struct activity *activity, size_t place, struct refusal *refusal)
{
	int err = counters_join(activity->counters, place);

	if (!err && activity->ops->attach_at && activity->ops->attach_at(activity, place, refusal))
		return -1;
	if (!err)
		err = activity->off ? 0 : counters_enable_at(activity->counters, place);
	return err ? because(refusal, "its events can't be opened: %s", strerror(-err)) : 0;
}
