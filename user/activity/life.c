// SPDX-License-Identifier: GPL-2.0-only
#include "activity/life.h"

#include <poll.h>
#include <string.h>

#include "activity/activity.h"
#include "activity/doubt.h"
#include "activity/targets.h"
#include "activity/warning.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/note.h"
#include "option/command.h"

static __u64 spent_by(const struct session *session)
{
	return session->cpu_share ? cpu_share_spent(session->cpu_share) : 0;
}

static void begin_interval(struct activity *activity)
{
	activity->interval_began = now_of(CLOCK_MONOTONIC);
	activity->interval_began_at = clock_realtime_of(&activity->interval_began);
	activity->interval_lead = clock_lead(CLOCK_BOOTTIME);
	activity->spent_before = spent_by(activity->session);
}

int activity_switch(struct activity *activity, bool on)
{
	int err = on ? counters_enable(activity->counters) : counters_disable(activity->counters);

	if (!err) {
		activity->off = !on;
		activity->was_off = activity->switched = true;
	}
	return err;
}

void activity_report(struct activity *activity, bool last)
{
	struct session *session = activity->session;
	struct timespec ended_at;
	struct clock_lead lead;

	activity->merged++;
	if (!last && !session_has_room(session, activity->name))
		return;
	activity->interval_ended = now_of(CLOCK_MONOTONIC);
	ended_at = clock_realtime_of(&activity->interval_ended);
	lead = clock_lead(CLOCK_BOOTTIME);
	hotplug_check(activity, last);
	cgroup_watch_look(activity);
	activity->spent = spent_by(session);
	if (activity->reader && last)
		reader_hurry_no_more(activity->reader);
	session_begin_interval(session, timespec_ns(&activity->interval_began), last);
	warn_of_taken(activity);
	activity->ops->report(activity, last);
	warn_of_clock(activity, &lead);
	warn_of_registers(activity);
	warn_of_share(activity);
	warn_of_late_cgroups(activity);
	warn_of_unfit_patterns(activity);
	if (last)
		warn_of_unfollowed(activity);
	session_end_interval(session);
	if (activity->reader)
		reader_begin(activity->reader, &activity->interval_ended);
	hotplug_next(activity);
	cgroup_watch_next(activity);
	activity->was_off = activity->off;
	activity->interval_began = activity->interval_ended;
	activity->interval_began_at = ended_at;
	activity->interval_lead = lead;
	activity->spent_before = activity->spent;
	activity->merged = 0;
	activity->reported = true;
}

static int check_formats(const struct activity *activity, size_t nr_events, struct refusal *refusal)
{
	const struct session *session = activity->session;

	for (size_t i = 0; i < session->nr_streams; i++) {
		const struct stream *stream = &session->streams[i];
		const struct format *format = stream->format;

		if (format->check && stream_is_for(stream, activity->name) &&
		    format_is_of(format, activity->command) &&
		    format->check(stream, activity->options, nr_events, refusal))
			return -1;
	}
	return 0;
}

bool activity_asked_to_stream(const struct options *options)
{
	return options->stream || options->command->activity->streams;
}

int activity_plan(struct activity *activity, struct refusal *refusal)
{
	const struct command *command = activity->options->command;

	activity->streams = activity_asked_to_stream(activity->options);
	if (check_formats(activity, 0, refusal) || command->activity->choose(activity, refusal) ||
	    activity->ops->plan(&activity->plan, activity->options, &activity->session->host, refusal) ||
	    check_formats(activity, activity->plan.events.nr, refusal))
		return -1;
	return activity->ops->check(activity, refusal);
}

/* Notes which events were opened, by their encoding for perf_event_open(2). */
static void note_events(const struct activity *activity)
{
	const struct places *places = counters_places(activity->counters);
	size_t open = 0;

	for (size_t p = 0; p < places->nr; p++)
		open += places->list[p].open;
	for (size_t i = 0; i < activity->plan.events.nr; i++) {
		const struct event *event = &activity->plan.events.list[i];
		const struct perf_event_attr *attr = &event->attr;

		note("opened %s: type %u, config 0x%llx, config1 0x%llx, %s %llu, precise %u%s%s, on %zu of "
		     "%zu CPUs or threads",
		     event->name, attr->type, attr->config, attr->config1,
		     attr->freq ? "frequency" : "period",
		     attr->freq ? attr->sample_freq : attr->sample_period, (unsigned int)attr->precise_ip,
		     attr->exclude_kernel ? ", user" : "", attr->exclude_user ? ", kernel" : "", open,
		     places->nr);
	}
}

static int open_and_attach(struct activity *activity, struct refusal *refusal)
{
	if (activity->ops->prepare)
		activity->ops->prepare(activity);
	if (activity_open_counters(activity, refusal))
		return -1;
	note_events(activity);
	if (activity->ops->attach && activity->ops->attach(activity, refusal))
		return -1;
	hotplug_begin(activity);
	cgroup_watch_begin(activity);
	return 0;
}

int activity_open(struct activity *activity, struct refusal *refusal)
{
	int err = open_and_attach(activity, refusal);

	counters_free_descriptors();
	return err;
}

int activity_begin(struct activity *activity, bool running, struct refusal *refusal)
{
	const struct target *target = &activity->plan.target;
	int err;

	activity->off = activity->was_off = activity->options->delay_ms;
	activity->reported = false;
	activity->switched = activity->off || (target_is_command(target) && running);
	/* The exec of a command enables its counting. */
	if (!activity->off && (!target_is_command(target) || running)) {
		err = counters_enable(activity->counters);
		if (err) {
			refuse(refusal, STATUS_REFUSED, "switching the events on");
			refusal->error = -err;
			return because(refusal, "%s", strerror(-err));
		}
	}
	cgroups_keep(activity->session->host.cgroups,
		     activity->options->interval_ms ? 2000000 * activity->options->interval_ms : ~0ULL);
	begin_interval(activity);
	doubt_begin(activity);
	activity->began = activity->interval_began;
	cgroup_watch_first(activity);
	return 0;
}

static void enough(struct activity *activity, const char *reason)
{
	activity->session->enough(activity->session, activity, reason);
}

/* Writes what waits, and adapts the period of drain() to what the operations want now. */
static void after_reading(struct activity *activity)
{
	if (activity->drain && activity->drain_ns)
		loop_pace(activity->drain, activity->drain_ns);
	if (session_flush_soon(activity->session))
		activity->session->unwritable(activity->session);
}

static void on_interval(void *context)
{
	struct activity *activity = context;

	/* The last interval is reported when the activity ends. */
	if (activity->intervals_left == 1) {
		enough(activity, "intervals");
		return;
	}
	activity->intervals_left -= activity->intervals_left > 0;
	activity_report(activity, false);
	after_reading(activity);
}

static void on_drain(void *context)
{
	struct activity *activity = context;

	activity->ops->drain(activity);
	after_reading(activity);
}

static void on_wake(void *context, short events)
{
	on_drain(context);
}

/* Reads registers often enough to notice each wrap. */
static void on_keep(void *context)
{
	struct activity *activity = context;

	for (size_t i = 0; i < activity->plan.events.nr; i++) {
		struct count ignored;

		if (activity->plan.events.list[i].msr)
			counters_read(activity->counters, i, &ignored);
	}
}

static void on_deadline(void *context)
{
	struct activity *activity = context;

	activity->deadline = NULL;
	enough(activity, "duration");
}

/* Starts the timers that begin when counting begins. */
static void start_timers(struct activity *activity)
{
	struct loop *loop = activity->session->loop;
	const struct options *options = activity->options;
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	if (options->interval_ms)
		activity->interval =
			loop_every(loop, now, options->interval_ms * 1000000, on_interval, activity);
	if (options->duration_s > 0)
		activity->deadline = loop_at(loop, now + options->duration_s * 1e9, on_deadline, activity);
	activity->intervals_left = options->interval_count;
}

/* The delay is over: counting is enabled for the first time, and the first interval begins. */
static void on_delay(void *context)
{
	struct activity *activity = context;

	activity->delay = NULL;
	activity_switch(activity, true);
	activity->was_off = false;
	begin_interval(activity);
	start_timers(activity);
}

static void on_targets_gone(void *context)
{
	enough(context, "exited");
}

void activity_wait(struct activity *activity)
{
	struct session *session = activity->session;
	const struct activity_ops *ops = activity->ops;
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	if (activity->options->delay_ms > 0)
		activity->delay = loop_at(session->loop, now + activity->options->delay_ms * 1000000,
					  on_delay, activity);
	else
		start_timers(activity);
	if (ops->drain && activity->drain_ns)
		activity->drain = loop_every(session->loop, now, activity->drain_ns, on_drain, activity);
	if (counters_pace(activity->counters))
		activity->keep =
			loop_every(session->loop, now, counters_pace(activity->counters), on_keep, activity);
	if (ops->wake_fd)
		activity->wake = loop_watch(session->loop, ops->wake_fd(activity), POLLIN, on_wake, activity);
	cgroup_watch_wait(activity);
	activity->share_member =
		cpu_share_join(session->cpu_share, ops->sampled_part ? ops->sampled_part(activity) : NULL,
			       activity->options->interval_ms * 1000000);
	/* A command says how long, even if the target ends before, as in perf stat. */
	if (!activity->plan.target.command)
		activity->targets = targets_watch(&activity->plan.target, session->loop, activity->counters,
						  on_targets_gone, activity);
}

void activity_wait_no_more(struct activity *activity)
{
	struct source **sources[] = {&activity->interval, &activity->drain, &activity->deadline,
				     &activity->delay,	  &activity->wake,  &activity->keep};

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		loop_remove(activity->session->loop, sources[i]);
	cgroup_watch_wait_no_more(activity);
	cpu_share_leave(activity->session->cpu_share, &activity->share_member);
	targets_release(activity->targets);
	activity->targets = NULL;
}

void activity_close(struct activity *activity)
{
	activity_wait_no_more(activity);
	/* Without counters, nothing was attached, and there may be no state. */
	if (activity->counters && activity->ops->detach)
		activity->ops->detach(activity);
	hotplug_end(activity);
	cgroup_watch_end(activity);
	counters_close(activity->counters);
	activity->counters = NULL;
}

void activity_release(struct activity *activity)
{
	if (activity->ops && activity->ops->release)
		activity->ops->release(activity);
	reader_close(activity->reader);
	doubts_release(activity->doubts);
	plan_release(&activity->plan);
	activity->reader = NULL;
	activity->doubts = NULL;
	activity->state = NULL;
	activity->ops = NULL;
}
