// SPDX-License-Identifier: GPL-2.0-only
#include "activity/warning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/visible.h"
#include "host/cgroup_owner.h"
#include "host/cgroup_pattern.h"
#include "host/cgroups.h"
#include "record/record.h"
#include "record/samples.h"

#define TOLERATED_PERCENT 1

struct loss {
	const char *of;
	__u64 lost, total;
	const char *remedy;
};

static int write_warning(struct activity *activity, json_t *record, const char *cause, const char *why)
{
	activity_put_interval(activity, record);
	json_object_set_new(record, "cause", json_string(cause));
	json_object_set_new(record, "why", json_string(why));
	return activity_write(activity, record);
}

static int warn(struct activity *activity, const char *event, const struct loss *loss)
{
	json_t *record = json_pack("{s:s}", "type", "warning");
	char why[160];

	snprintf(why, sizeof(why), "%.1f %% of an interval's %s were lost: a table was full",
		 100.0 * loss->lost / loss->total, loss->of);
	activity_say(activity, "%s: %s. Next: %s.", event, why, loss->remedy);
	json_object_set_new(record, "event", value_text(event, 512));
	json_object_set_new(record, "of", json_string(loss->of));
	json_object_set_new(record, "lost", json_integer(loss->lost));
	json_object_set_new(record, "total", json_integer(loss->total));
	json_object_set_new(record, "remedy", json_string(loss->remedy));
	return write_warning(activity, record, "table_full", why);
}

int warn_of_loss(struct activity *activity, const char *event, const struct samples *samples,
		 const struct reading *reading, bool *warned)
{
	const struct loss losses[] = {
		{"samples", samples->table_full, samples->expected,
		 "tell fewer keys apart (--by), or sample less often (-c, -F)"},
		{"stacks", reading->stacks_full, samples->aggregated,
		 "keep fewer frames of a stack (--max-stack), or sample less often (-c, -F)"},
		{"branches", reading->further_lost, reading->further + reading->further_lost,
		 "tell fewer keys apart (--by), or sample less often (-c, -F)"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(losses) && !*warned; i++) {
		if (losses[i].lost * 100 <= losses[i].total * TOLERATED_PERCENT)
			continue;
		*warned = true;
		return warn(activity, event, &losses[i]);
	}
	return 0;
}

int warn_of_keys(struct activity *activity, const char *event, __u64 nr_shed, size_t most, bool *warned)
{
	static const char *const remedy =
		"tell fewer keys apart (--by), write intervals (-I), or allow more memory (--memory)";
	json_t *record;
	char why[200];

	if (!nr_shed || *warned)
		return 0;
	*warned = true;
	record = json_pack("{s:s}", "type", "warning");
	snprintf(why, sizeof(why),
		 "there were more keys than the %zu that are kept in memory; those with the least weight, "
		 "%llu in all, are only summed up, in rest",
		 most, (unsigned long long)nr_shed);
	activity_say(activity, "%s: %s. Next: %s.", event, why, remedy);
	json_object_set_new(record, "event", value_text(event, 512));
	json_object_set_new(record, "keys", json_integer(nr_shed));
	json_object_set_new(record, "remedy", json_string(remedy));
	return write_warning(activity, record, "keys_summed_up", why);
}

void warn_of_spellings(const struct activity *activity)
{
	const struct events *events = &activity->plan.events;

	for (size_t i = 0; i < events->nr; i++)
		if (events->list[i].note[0])
			activity_say(activity, "%s: %s", events->list[i].name, events->list[i].note);
}

#define STEP_NS 10000000ULL

int warn_of_clock(struct activity *activity, const struct clock_lead *now)
{
	const struct clock_lead *then = &activity->interval_lead;
	__s64 step = now->ns - then->ns;
	__u64 slewed = STEP_NS + activity_interval_ns(activity) / 1000 + then->within + now->within;
	json_t *record;
	char why[160];

	if ((__u64)llabs(step) <= slewed)
		return 0;
	snprintf(why, sizeof(why),
		 "the system's clock was set by %+.3f s in an interval; durations are right", step / 1e9);
	say("nhmtap: %s: %s.", activity->name, why);
	record = json_pack("{s:s, s:I}", "type", "warning", "step_ns", (json_int_t)step);
	return write_warning(activity, record, "clock_set", why);
}

int warn_of_registers(struct activity *activity)
{
	const struct events *events = &activity->plan.events;
	int err = 0;

	for (size_t i = 0; i < events->nr && !err; i++) {
		const char *why;

		while (!err && (why = counters_lost(activity->counters, i))) {
			json_t *record = json_pack("{s:s}", "type", "warning");

			activity_say(activity, "%s: %s; it is not counted any more.", events->list[i].name,
				     why);
			json_object_set_new(record, "event", value_text(events->list[i].name, 160));
			err = write_warning(activity, record, "register_lost", why);
		}
	}
	return err;
}

int warn_of_share(struct activity *activity)
{
	struct cpu_share *share = activity->session->cpu_share;
	double used = activity_share(activity);
	json_t *record;
	char why[160];

	if (!share || !cpu_share_exceeded(share))
		return 0;
	snprintf(why, sizeof(why), "%.2f %% of a CPU were used of %.2f %%, and not for samples", 100 * used,
		 100 * cpu_share_control(share)->allowed);
	say("nhmtap: %s: %s. Next: write less often (-I), tell fewer keys apart (--by), or allow more.",
	    activity->name, why);
	record = json_pack("{s:s, s:f, s:f}", "type", "warning", "used", used, "allowed",
			   cpu_share_control(share)->allowed);
	json_object_set_new(
		record, "remedy",
		json_string(
			"write less often (-I), tell fewer keys apart (--by), or allow more (--cpu-share)"));
	return write_warning(activity, record, "share_exceeded", why);
}

int warn_of_doubt(struct activity *activity, const char *event, const char *why)
{
	static const char *const remedy =
		"do not trust this machine's counters: nhmtap doctor --selftest tries them; in a virtual "
		"machine, ask for a PMU that counts, or measure on the host";
	json_t *record = json_pack("{s:s}", "type", "warning");

	activity_say(activity, "%s: it can't be true: %s. Next: %s.", event, why, remedy);
	json_object_set_new(record, "event", value_text(event, 512));
	json_object_set_new(record, "remedy", json_string(remedy));
	return write_warning(activity, record, "implausible", why);
}

/*
 * What a normal command may spend uncounted: until its exec, and in each thread and child before its events
 * begin and after they are taken away. That is a third of a thread that does nothing else. The number of
 * threads and children is not known, but each has page faults or is switched to, so those allow for a time,
 * up to a share of all. The time that the exec took shows how slow the machine is.
 */
#define ALLOWED_EXECS	     3
#define ALLOWED_PERCENT	     5
#define FAULTS_AN_EXEC	     50
#define SWITCHES_AN_EXEC     8
#define ALLOWED_MOST_PERCENT 50

static __u64 allowed_ns(const struct child *child, __u64 all)
{
	__u64 starts = child->spent.faults * child->exec_ns / FAULTS_AN_EXEC +
		       child->spent.switches * child->exec_ns / SWITCHES_AN_EXEC,
	      most = all * ALLOWED_MOST_PERCENT / 100;

	return ALLOWED_EXECS * child->exec_ns + all * ALLOWED_PERCENT / 100 + (starts < most ? starts : most);
}

/* The longest times of its events. The enabled time runs while the command does, but that of a pinned event
 * stands still when there is no counter for it. Sets `pinned` if all are such events. */
static struct count longest_times(const struct activity *activity, bool *pinned)
{
	const struct events *events = &activity->plan.events;
	struct count most = {0};

	*pinned = true;
	for (size_t i = 0; i < events->nr; i++) {
		struct count count;

		if (counters_read(activity->counters, i, &count))
			continue;
		*pinned = *pinned && event_is_pinned(events, i) && !events_always_run(events, i);
		if (count.enabled_ns > most.enabled_ns)
			most.enabled_ns = count.enabled_ns;
		if (count.running_ns > most.running_ns)
			most.running_ns = count.running_ns;
	}
	return most;
}

int warn_of_unfollowed(struct activity *activity)
{
	const struct child *child = &activity->session->child;
	struct count counted;
	__u64 spent, uncounted;
	json_t *record;
	bool pinned;
	char why[360];

	if (!target_is_command(&activity->plan.target) || !child->exited || activity->switched)
		return 0;
	spent = child->spent.user_ns + child->spent.system_ns;
	spent -= spent < child->before_ns ? spent : child->before_ns;
	counted = longest_times(activity, &pinned);
	uncounted = spent > counted.enabled_ns ? spent - counted.enabled_ns : 0;
	/* The records say that they had no counter. */
	if (pinned && !counted.running_ns && !activity_cut(activity))
		return 0;
	if (!activity_cut(activity) && (!child->exec_ns || uncounted <= allowed_ns(child, spent)))
		return 0;
	snprintf(why, sizeof(why),
		 "%.3f ms of the %.3f ms that the command and its children ran are in no count: the kernel "
		 "ends the counting of a process that executes a program which changes its rights (setuid, "
		 "file capabilities) or which it may not read%s",
		 uncounted / 1e6, spent / 1e6,
		 pinned ? ", and that of a pinned event for which it finds no counter" : "");
	say("nhmtap: %s: %s. Next: %s.", activity->name, why, "count whole CPUs (-a)");
	record = json_pack("{s:s, s:I, s:I, s:s}", "type", "warning", "uncounted_ns", (json_int_t)uncounted,
			   "spent_ns", (json_int_t)spent, "remedy", "count whole CPUs (-a)");
	return write_warning(activity, record, "not_followed", why);
}

int warn_of_taken(struct activity *activity)
{
	int err = 0, place;

	while (!err && (place = counters_look_at_threads(activity->counters)) >= 0) {
		const struct place *thread = &counters_places(activity->counters)->list[place];
		const char *remedy = thread->taken ? "count whole CPUs (-a)" : "count the process (-p)";
		json_t *record = json_pack("{s:s, s:s}", "type", "warning", "remedy", remedy);
		char why[300];

		snprintf(why, sizeof(why), "thread %d %s", thread->id,
			 thread->taken ? "goes on and is not counted any more: it executed a program that "
					 "changes its "
					 "rights (setuid, file capabilities) or that it may not read"
				       : "has ended: another thread of its process executed a program, goes "
					 "on with its id, "
					 "and is not counted");
		say("nhmtap: %s: %s. Next: %s.", activity->name, why, remedy);
		err = write_warning(activity, record, "not_followed", why);
	}
	return err;
}

int warn_of_late_cgroups(struct activity *activity)
{
	json_t *late = activity->cgroup_watch.told ? NULL : activity_cgroups_late(activity, -1), *record;
	json_int_t cgroups, unseen;
	const char *remedy = "measure a cgroup that contains them (-G), or all (-a)";
	char why[200];

	if (!late)
		return 0;
	cgroups = json_integer_value(json_object_get(late, "cgroups"));
	unseen = json_integer_value(json_object_get(late, "unseen"));
	json_decref(late);
	snprintf(why, sizeof(why),
		 "of cgroups that fit a pattern, %lld were found after something could run in them, and %lld "
		 "were gone before; what ran in them until then is not measured",
		 (long long)cgroups, (long long)unseen);
	say("nhmtap: %s: %s. Next: %s.", activity->name, why, remedy);
	record = json_pack("{s:s, s:I, s:I, s:s}", "type", "warning", "cgroups", cgroups, "unseen", unseen,
			   "remedy", remedy);
	activity->cgroup_watch.told = true;
	return write_warning(activity, record, "cgroups_late", why);
}

/* --- patterns without a cgroup ------------------------------------------------------------------ */

#define NEAREST_CGROUPS 3
#define CGROUPS_MOST	4096 /* that are compared */

struct alike {
	const struct cgroup_pattern *pattern;
	struct nearest nearest;
	char **paths; /* what `nearest` refers to */
	size_t nr;
	bool fits;
};

static bool fits_path(const struct cgroup_pattern *pattern, const char *path)
{
	return pattern->container ? cgroup_is_owned(path, pattern->text) : cgroup_fits(pattern->text, path);
}

static bool compare_cgroup(void *context, const char *path, __u64 id)
{
	struct alike *alike = context;

	alike->fits |= fits_path(alike->pattern, path);
	if (!alike->fits && alike->nr < CGROUPS_MOST) {
		*xappend(alike->paths, alike->nr) = xstrdup(path);
		nearest_offer(&alike->nearest, alike->paths[alike->nr - 1]);
	}
	return !alike->fits;
}

/* The pattern up to the parts that are nothing but '*', which are no typing errors. */
static char *plain_part(const char *pattern)
{
	char *plain = xstrdup(pattern);

	for (size_t end = strlen(plain); end && strchr("*/", plain[end - 1]); end--)
		plain[end - 1] = '\0';
	return plain;
}

static int warn_of_unfit(struct activity *activity, const struct cgroup_pattern *pattern, const char *nearest)
{
	json_t *record = json_pack("{s:s}", "type", "warning");
	char why[300], remedy[600] = "";

	snprintf(why, sizeof(why),
		 pattern->container ? "no container has an id that begins with '%.200s'"
				    : "no cgroup fits the pattern '%.200s'",
		 pattern->text);
	if (*nearest)
		snprintf(remedy, sizeof(remedy), "did you mean %s", nearest);
	say("nhmtap: %s: %s, so far.%s%s%s", activity->name, why, *remedy ? " Next: " : "", remedy,
	    *remedy ? "?" : "");
	if (*remedy)
		json_object_set_new(record, "remedy", json_string(remedy));
	return write_warning(activity, record, "pattern_unfit", why);
}

static int look_for_alike(struct activity *activity, const struct cgroup_pattern *pattern)
{
	struct alike alike = {.pattern = pattern};
	char *plain = plain_part(pattern->text), text[512] = "";
	int err = 0;

	nearest_begin(&alike.nearest, plain, NEAREST_CGROUPS);
	cgroups_walk(activity->session->host.cgroup_mount, "", 0, compare_cgroup, &alike);
	if (!alike.fits) {
		nearest_print(&alike.nearest, text, sizeof(text));
		err = warn_of_unfit(activity, pattern, text);
	}
	for (size_t i = 0; i < alike.nr; i++)
		free(alike.paths[i]);
	free(alike.paths);
	free(plain);
	return err;
}

int warn_of_unfit_patterns(struct activity *activity)
{
	const struct target *target = &activity->plan.target;
	int err = 0;

	if (activity->cgroup_watch.compared)
		return 0;
	activity->cgroup_watch.compared = true;
	for (size_t i = 0; i < target->nr_patterns && !err; i++)
		if (!target->patterns[i].fitted && strcmp(target->patterns[i].text, CGROUPS_ALL))
			err = look_for_alike(activity, &target->patterns[i]);
	return err;
}
