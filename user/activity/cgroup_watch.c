// SPDX-License-Identifier: GPL-2.0-only
#include "activity/cgroup_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "activity/activity.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/note.h"
#include "host/cgroup_notices.h"
#include "host/cgroup_owner.h"
#include "host/cgroup_pattern.h"
#include "host/cgroups.h"
#include "host/files.h"
#include "record/owner.h"
#include "record/record.h"
#include "session/names.h"
#include "shared.h"

#define LOOK_MOST_NS  1000000000ULL
#define LOOK_LEAST_NS 10000000ULL

/* After a search because of a notice, there is none for so many times as long as it took. */
#define REST 9

static int tell_of_cgroup(struct activity *activity, size_t i, const char *change, const char *why)
{
	const struct cgroup *cgroup = &activity->plan.target.cgroups[i];
	json_t *record = json_pack("{s:s, s:s}", "type", "target", "change", change);

	json_object_set_new(record, "cgroup", value_text(cgroup->name, 1024));
	owner_put(record, cgroup->path + strlen(activity->session->host.cgroup_mount));
	if (why)
		json_object_set_new(record, "why", value_text(why, 512));
	if (activity->cgroup_watch.looked)
		return activity_write(activity, record);
	json_array_append_new(activity->cgroup_watch.untold, record);
	return 0;
}

/* Stores the path of the cgroup's id, so that it is known even after the cgroup has gone. */
static void note_cgroup(const struct activity *activity, size_t i)
{
	const struct host *host = &activity->session->host;
	const char *path = activity->plan.target.cgroups[i].path + strlen(host->cgroup_mount);

	__u64 id = counters_cgroup_id(activity->counters, i) ?: activity->cgroup_watch.list[i].id;

	cgroups_note(host->cgroups, id, *path ? path : "/");
}

static void leave_cgroup(struct activity *activity, size_t i)
{
	struct watched_cgroup *watched = &activity->cgroup_watch.list[i];

	activity_detach_places(activity, -1, i);
	counters_leave_cgroup(activity->counters, i);
	*watched = (struct watched_cgroup){.id = watched->id,
					   .away = true,
					   .missed = true,
					   .late = watched->late,
					   .late_ns = watched->late_ns};
	tell_of_cgroup(activity, i, "gone", NULL);
}

/* A cgroup that was found by a pattern has gone. What it has counted must still be reported before its place
 * is free, unless it is in the total already. */
static void leave_for_good(struct activity *activity, size_t i)
{
	struct target *target = &activity->plan.target;

	if (!activity->cgroup_watch.list[i].away)
		leave_cgroup(activity, i);
	target->cgroups[i].gone = true;
	target->cgroups[i].vacant = !(target->per & PER_CGROUP) && !counters_by_switches(activity->counters);
}

/* Opens a cgroup's events on each online CPU. For CPUs that come online later, hotplug.c does so. */
static int open_places(struct activity *activity, size_t i, struct refusal *refusal)
{
	const struct places *places = counters_places(activity->counters);
	struct cpus online = activity->session->host.online;

	notices_online(&activity->session->notices, &online);
	for (size_t p = 0; p < places->nr; p++)
		if (places->list[p].cgroup == (int)i && cpus_has(&online, places->list[p].cpu) &&
		    activity_join_place(activity, p, refusal))
			return -1;
	return 0;
}

/* The CPU time that was used in a cgroup so far, which it counts without any controller; 0: not known. */
static __u64 used_ns(const struct activity *activity, size_t i)
{
	unsigned long long usec = 0;
	char text[1024];

	if (slurp(&activity->session->host, text, sizeof(text), "%s/cpu.stat",
		  activity->plan.target.cgroups[i].path) <= 0 ||
	    sscanf(text, "usage_usec %llu", &usec) != 1)
		return 0;
	return usec * 1000;
}

static bool has_processes(const struct activity *activity, size_t i)
{
	char text[64];

	return slurp(&activity->session->host, text, sizeof(text), "%s/cgroup.procs",
		     activity->plan.target.cgroups[i].path) > 0;
}

/* Whether what runs in any cgroup is measured, before it is known whether it fits. */
static bool is_seen_early(const struct activity *activity)
{
	return counters_by_switches(activity->counters) || activity->plan.target.by_samples;
}

/* A cgroup that was made in the run is measured from now on. Notes what was used in it before, unless the
 * counts have it. The kernel adds a running task's time only at its next tick. */
static void note_late(struct activity *activity, size_t i)
{
	struct watched_cgroup *watched = &activity->cgroup_watch.list[i];

	if (!activity->cgroup_watch.looked || is_seen_early(activity) ||
	    !activity->plan.target.cgroups[i].found)
		return;
	watched->late_ns = used_ns(activity, i);
	watched->late = watched->late_ns || has_processes(activity, i);
	activity->cgroup_watch.late += watched->late;
	activity->cgroup_watch.late_ns += watched->late_ns;
}

static void join_cgroup(struct activity *activity, size_t i)
{
	struct watched_cgroup *watched = &activity->cgroup_watch.list[i];
	int err = counters_join_cgroup(activity->counters, i);
	struct refusal refusal = {0};

	if (err == -ENOENT)
		return;
	if (err)
		because(&refusal, "it can't be opened: %s", strerror(-err));
	if (!err && !open_places(activity, i, &refusal)) {
		watched->away = watched->refused = false;
		note_late(activity, i);
		note_cgroup(activity, i);
		tell_of_cgroup(activity, i, "appeared", NULL);
		return;
	}
	activity_detach_places(activity, -1, i);
	counters_leave_cgroup(activity->counters, i);
	if (!watched->refused)
		tell_of_cgroup(activity, i, "refused", refusal.why);
	watched->refused = true;
}

/* --- what patterns find ----------------------------------------------------------------------- */

static struct watched_cgroup *watched_of(struct activity *activity, __u64 id)
{
	struct cgroup_watch *watch = &activity->cgroup_watch;

	for (size_t i = 0; i < watch->nr; i++)
		if (watch->list[i].id == id && !activity->plan.target.cgroups[i].gone)
			return &watch->list[i];
	return NULL;
}

static struct watched_cgroup *take_in(struct activity *activity, const char *path, __u64 id)
{
	struct cgroup_watch *watch = &activity->cgroup_watch;
	size_t i = target_take_in(&activity->plan.target, &activity->session->host, path,
				  id >= CGROUP_NO_CGROUP);

	counters_take_in_cgroup(activity->counters, i);
	if (i == watch->nr)
		(void)xappend(watch->list, watch->nr);
	watch->list[i] = (struct watched_cgroup){.id = id, .away = true};
	return &watch->list[i];
}

/* Whether the cgroup above belongs to the same container. Cgroups inside it are counted with it. */
static bool is_owned_above(const struct cgroup_pattern *pattern, const char *path)
{
	char *above = xstrdup(path);
	bool owned;

	*strrchr(above, '/') = '\0';
	owned = cgroup_is_owned(above, pattern->text);
	free(above);
	return owned;
}

static bool fits_pattern(const struct activity *activity, const struct cgroup_pattern *pattern,
			 const char *path)
{
	if (path[0] != '/') /* it has no path */
		return !strcmp(pattern->text, CGROUPS_ALL);
	if (pattern->container)
		return cgroup_is_owned(path, pattern->text) &&
		       (counters_by_switches(activity->counters) || !is_owned_above(pattern, path));
	/* A pattern for all cgroups includes the root, which counts everything that is in no other cgroup. */
	return cgroup_fits(pattern->text, path) ||
	       (!strcmp(path, "/") && !strcmp(pattern->text, CGROUPS_ALL) &&
		counters_by_switches(activity->counters));
}

static bool fits_a_pattern(const struct activity *activity, const char *path)
{
	const struct target *target = &activity->plan.target;
	bool found = false;

	/* All are tried: none that it fits is told as one that nothing fits. */
	for (size_t i = 0; i < target->nr_patterns; i++)
		if (fits_pattern(activity, &target->patterns[i], path)) {
			target->patterns[i].fitted = true;
			found = true;
		}
	return found;
}

static bool may_fit_below(const struct activity *activity, const char *path)
{
	const struct target *target = &activity->plan.target;

	if (counters_by_switches(activity->counters))
		return true;
	for (size_t i = 0; i < target->nr_patterns; i++)
		if (target->patterns[i].container || cgroup_may_fit_below(target->patterns[i].text, path))
			return true;
	return false;
}

/* Called for each cgroup that a pattern may match, outer ones first. Cgroups within a measured one are
 * measured with it, unless counts are per cgroup. */
static bool look_at_cgroup(struct activity *activity, const char *path, __u64 id)
{
	const struct target *target = &activity->plan.target;
	const struct host *host = &activity->session->host;
	bool apart = target->per & PER_CGROUP;
	struct watched_cgroup *watched;

	if (is_seen_early(activity))
		cgroups_note(host->cgroups, id, path);
	if (!apart && target_has_cgroup(target, host, path, true))
		return false;
	if (target_has_cgroup(target, host, path, false) || !fits_a_pattern(activity, path))
		return may_fit_below(activity, path);
	watched = watched_of(activity, id) ?: take_in(activity, path, id);
	watched->seen = true;
	return apart && may_fit_below(activity, path);
}

static void watch_folder(const struct activity *activity, const char *path, size_t length)
{
	char *folder = xasprintf("%s%.*s", activity->session->host.cgroup_mount, (int)length, path);

	if (activity->cgroup_watch.notices)
		cgroup_notices_watch(activity->cgroup_watch.notices, folder);
	free(folder);
}

static bool on_cgroup(void *context, const char *path, __u64 id)
{
	bool below = look_at_cgroup(context, path, id);

	if (below && strcmp(path, "/"))
		watch_folder(context, path, strlen(path));
	return below;
}

/* Adds cgroups that match the target's patterns, and removes those that have gone. */
static void look_for_patterns(struct activity *activity)
{
	const struct target *target = &activity->plan.target;
	struct cgroup_watch *watch = &activity->cgroup_watch;
	const struct cgroup_pattern *first = &target->patterns[0];
	const char *root = target->nr_patterns == 1 && !first->container ? first->text : "";

	for (size_t i = 0; i < watch->nr; i++)
		watch->list[i].seen = false;
	watch_folder(activity, root, cgroup_pattern_root(root));
	/* One walk for all patterns, so that a cgroup within a measured one is not found by another pattern.
	 */
	cgroups_walk(activity->session->host.cgroup_mount, root, cgroup_pattern_root(root), on_cgroup,
		     activity);
	if (watch->notices)
		cgroup_notices_keep(watch->notices);
	for (size_t i = 0; i < watch->nr; i++)
		if (target->cgroups[i].found && !target->cgroups[i].gone && !watch->list[i].seen &&
		    watch->list[i].id < CGROUP_NO_CGROUP)
			leave_for_good(activity, i);
}

/* --- counts by switches ------------------------------------------------------------------------ */

/* Names in records for counts that can't be attributed to a cgroup. Some of them may belong to any cgroup
 * that is counted. */
static const char *const last_slots[CGROUP_LAST_SLOTS] = {
	[CGROUP_OTHERS] = "(others)",
	[CGROUP_MISSED] = "(missed)",
};

/* The path of a cgroup, or NULL. The note of one that was made just now may not have been read yet. */
static const char *path_of(const struct activity *activity, __u64 id)
{
	struct cgroups *cgroups = activity->session->host.cgroups;
	const char *path = cgroups_path(cgroups, id);

	if (path || !activity->cgroup_watch.follows)
		return path;
	names_take(activity->session->names);
	return cgroups_path(cgroups, id);
}

/* Whether a cgroup, or one that contains it, fits a pattern. */
static bool fits_inside(const struct activity *activity, const char *path)
{
	char *above = xstrdup(path), *end;
	bool found = fits_a_pattern(activity, above);

	while (!found && (end = strrchr(above, '/')) && end != above) {
		*end = '\0';
		found = fits_a_pattern(activity, above);
	}
	free(above);
	return found;
}

bool cgroup_watch_wants(struct activity *activity, __u64 id)
{
	struct cgroup_watch *watch = &activity->cgroup_watch;
	struct verdict *verdict = &watch->verdicts[id % ARRAY_SIZE(watch->verdicts)];
	const char *path;

	if (verdict->id == id)
		return verdict->wanted;
	path = path_of(activity, id);
	*verdict = (struct verdict){id, path ? fits_inside(activity, path) : fits_a_pattern(activity, "id:")};
	watch->unknown += !path && !verdict->wanted;
	return verdict->wanted;
}

/* Returns the index of the target's cgroup that a cgroup belongs to by its path: the innermost that contains
 * it. A cgroup that matches a pattern, but came and went since the last search, is added if it is told apart,
 * or in none. -1: none. */
static int cgroup_of_path(struct activity *activity, __u64 id, const char *path)
{
	const struct target *target = &activity->plan.target;
	size_t mount = strlen(activity->session->host.cgroup_mount), longest = 0;
	int found = -1;

	for (size_t i = 0; i < target->nr_cgroups; i++) {
		const char *of = target->cgroups[i].path + mount;
		size_t length = strlen(of);

		if (target->cgroups[i].gone || length <= longest || strncmp(of, path, length) ||
		    (path[length] && path[length] != '/'))
			continue;
		longest = length;
		found = i;
	}
	if (fits_a_pattern(activity, path) && (found < 0 || target->per & PER_CGROUP)) {
		found = take_in(activity, path, id) - activity->cgroup_watch.list;
		join_cgroup(activity, found);
	}
	return found;
}

#define NOT_KNOWN (-2)

/* The index of the target's cgroup that these sums belong to; -1: none; NOT_KNOWN: this can't be told. */
static int cgroup_of_id(struct activity *activity, __u64 id)
{
	const struct cgroup_watch *watch = &activity->cgroup_watch;
	struct watched_cgroup *taken;
	char number[32];
	const char *path;
	int found;

	for (size_t i = 0; i < watch->nr; i++)
		if (watch->list[i].id == id && !activity->plan.target.cgroups[i].vacant)
			return i;
	if (id >= CGROUP_NO_CGROUP) {
		taken = take_in(activity, last_slots[id - CGROUP_NO_CGROUP], id);
		taken->away = false;
		return taken - watch->list;
	}
	path = path_of(activity, id);
	if (path)
		return cgroup_of_path(activity, id, path);
	/* The name, as in entries, of a cgroup that was gone before it was looked up. */
	snprintf(number, sizeof(number), "id:%llu", id);
	found = cgroup_of_path(activity, id, number);
	return found < 0 ? NOT_KNOWN : found;
}

static void put_sums(void *context, __u64 id, const struct count *counts)
{
	struct activity *activity = context;
	int i = cgroup_of_id(activity, id);

	activity->cgroup_watch.sums++;
	if (id < CGROUP_NO_CGROUP && id > activity->cgroup_watch.newest)
		activity->cgroup_watch.newest = id;
	activity->cgroup_watch.unknown += i == NOT_KNOWN && counts[0].value;
	if (i < 0)
		return;
	counters_put_cgroup(activity->counters, i, counts);
	activity->cgroup_watch.list[i].summed = true;
}

/* Cgroups that have gone. */
struct ended_cgroups {
	struct activity *activity;
	__u64 newest; /* ids of newer ones are greater: __kernfs_new_node(), fs/kernfs/dir.c */
	__u64 *ids;
	size_t nr;
};

static bool has_ended(const struct ended_cgroups *ended, __u64 id)
{
	for (size_t i = 0; i < ended->nr; i++)
		if (ended->ids[i] == id)
			return true;
	return false;
}

/* Whether a cgroup has gone. One whose path is not known was gone when it was looked for. */
static bool is_gone(const struct activity *activity, __u64 id)
{
	const struct host *host = &activity->session->host;
	const char *path = path_of(activity, id);
	char *folder = xasprintf("%s%s", host->cgroup_mount, path ? path : "");
	struct stat there;
	bool gone = !path || stat(folder, &there) || there.st_ino != id;

	free(folder);
	return gone;
}

static void find_ended(void *context, __u64 id, const struct count *counts)
{
	struct ended_cgroups *ended = context;

	if (id > ended->newest || has_ended(ended, id) || !is_gone(ended->activity, id))
		return;
	*xappend(ended->ids, ended->nr) = id;
}

static void keep_ended(void *context, __u64 id, const struct count *counts)
{
	struct ended_cgroups *ended = context;
	int i = has_ended(ended, id) ? cgroup_of_id(ended->activity, id) : -1;

	if (i >= 0) {
		counters_keep_sums(ended->activity->counters, i, counts);
		ended->activity->cgroup_watch.list[i].summed = false;
	}
	ended->activity->cgroup_watch.unseen += i == NOT_KNOWN && counts[0].value;
}

/* Adds the counts of cgroups that have gone permanently to those of the target's cgroups that they are, or
 * were in, and frees their slots in the table. Only of those up to `newest`. */
static void keep_sums(struct activity *activity, __u64 newest)
{
	struct ended_cgroups ended = {.activity = activity, .newest = newest};

	counters_each_sums(activity->counters, find_ended, &ended);
	if (ended.nr)
		counters_each_sums(activity->counters, keep_ended, &ended);
	for (size_t i = 0; i < ended.nr; i++)
		counters_release_sums(activity->counters, ended.ids[i]);
	free(ended.ids);
}

/* Cgroups that have gone are kept apart up to this number in an interval. Beyond that, the half with the
 * smallest counts are added to those that found no free slot. */
#define GONE_MOST 4096

struct gone_cgroup {
	__u64 value; /* of the first event */
	size_t i;
};

static int by_value(const void *a, const void *b)
{
	const struct gone_cgroup *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

/* Lists those that no record has had and to which nothing will be added any more. */
static size_t list_gone(const struct activity *activity, struct gone_cgroup *list)
{
	const struct cgroup_watch *watch = &activity->cgroup_watch;
	size_t nr = 0;

	for (size_t i = 0; i < watch->nr; i++) {
		const struct cgroup *cgroup = &activity->plan.target.cgroups[i];
		struct count count;

		if (!cgroup->gone || cgroup->vacant || watch->list[i].summed || watch->list[i].reported)
			continue;
		counters_last_cgroup(activity->counters, 0, i, &count);
		list[nr++] = (struct gone_cgroup){count.value, i};
	}
	return nr;
}

static void merge_gone(struct activity *activity)
{
	struct gone_cgroup *list;
	size_t nr, others;

	if (activity->cgroup_watch.nr <= GONE_MOST)
		return;
	list = xcalloc(activity->cgroup_watch.nr, sizeof(*list));
	nr = list_gone(activity, list);
	if (nr > GONE_MOST) {
		others = cgroup_of_id(activity, CGROUP_NO_CGROUP + CGROUP_OTHERS);
		qsort(list, nr, sizeof(*list), by_value);
		for (size_t i = 0; i < nr / 2; i++) {
			counters_move_cgroup(activity->counters, list[i].i, others);
			activity->plan.target.cgroups[list[i].i].vacant = true;
		}
	}
	free(list);
}

/* With this many sums, those of cgroups that have gone are released before the interval ends: a CPU has room
 * for twice as many at least. */
#define SUMS_MANY 512

void cgroup_watch_gather(struct activity *activity)
{
	struct cgroup_watch *watch = &activity->cgroup_watch;

	if (!counters_by_switches(activity->counters))
		return;
	watch->sums = watch->unknown = 0;
	for (size_t i = 0; i < watch->nr; i++)
		watch->list[i].summed = false;
	counters_gather(activity->counters);
	counters_each_sums(activity->counters, put_sums, activity);
	/* The last task of a cgroup may be on its CPU for a little longer than the cgroup is there. */
	if (watch->sums > SUMS_MANY)
		keep_sums(activity, watch->newest_before);
	watch->newest_before = watch->newest;
	merge_gone(activity);
}

/* The folder of the patterns has been removed. If it was made again, what ran in it so far is missing. */
static void leave_folder(struct activity *activity)
{
	const struct places *places = counters_places(activity->counters);
	struct cpus online = activity->session->host.online;
	struct refusal refusal = {0};

	activity_detach_places(activity, -1, -1);
	activity->cgroup_watch.unseen += !access(activity->plan.target.folder, F_OK);
	counters_leave_folder(activity->counters);
	notices_online(&activity->session->notices, &online);
	for (size_t p = 0; p < places->nr; p++)
		if (cpus_has(&online, places->list[p].cpu) && activity_join_place(activity, p, &refusal))
			note("CPU %d is not measured any more: %s", places->list[p].cpu, refusal.why);
}

void cgroup_watch_look(struct activity *activity)
{
	struct cgroup_watch *watch = &activity->cgroup_watch;

	if (counters_lost_folder(activity->counters))
		leave_folder(activity);
	if (activity->plan.target.nr_patterns)
		look_for_patterns(activity);
	for (size_t i = 0; i < watch->nr; i++) {
		if (activity->plan.target.cgroups[i].gone)
			continue;
		if (!watch->list[i].away && !activity->plan.target.cgroups[i].found &&
		    !counters_has_cgroup(activity->counters, i))
			leave_cgroup(activity, i);
		if (watch->list[i].away)
			join_cgroup(activity, i);
	}
}

static void on_look(void *context)
{
	struct activity *activity = context;

	cgroup_watch_look(activity);
	/* Paths of cgroups that have gone are not known for ever. */
	if (activity->cgroup_watch.follows)
		cgroup_watch_gather(activity);
	if (session_flush_soon(activity->session))
		activity->session->unwritable(activity->session);
}

/* --- notices ---------------------------------------------------------------------------------- */

/* Folders of cgroups that were made. */
struct made {
	struct activity *activity;
	char **folders;
	size_t nr, room;
};

static void on_made(void *context, const char *folder)
{
	struct made *made = context;
	const char *path = folder + strlen(made->activity->session->host.cgroup_mount);

	if (!fits_a_pattern(made->activity, path) && !may_fit_below(made->activity, path))
		return;
	made->folders = xroom(made->folders, made->nr, &made->room, sizeof(*made->folders));
	made->folders[made->nr++] = xstrdup(folder);
}

/* Whether a cgroup is among those that were found, or is measured with one that contains it. */
static bool was_found(const struct activity *activity, const char *folder)
{
	const struct target *target = &activity->plan.target;

	for (size_t i = 0; i < target->nr_cgroups; i++) {
		size_t length = strlen(target->cgroups[i].path);

		if (!strncmp(target->cgroups[i].path, folder, length) &&
		    (!folder[length] || folder[length] == '/'))
			return true;
	}
	return false;
}

static void rest_until(struct activity *activity, __u64 ns);

/* Searches at once, so that a new cgroup is measured as early as possible. */
static void on_notice(void *context, short events)
{
	struct activity *activity = context;
	struct cgroup_watch *watch = &activity->cgroup_watch;
	struct made made = {.activity = activity};
	__u64 begin = clock_ns(CLOCK_MONOTONIC), took;

	cgroup_notices_take(watch->notices, on_made, &made);
	if (made.nr)
		on_look(activity);
	for (size_t i = 0; i < made.nr; i++) {
		const char *path = made.folders[i] + strlen(activity->session->host.cgroup_mount);

		if (!watch->follows && fits_a_pattern(activity, path) &&
		    !was_found(activity, made.folders[i]))
			watch->unseen++;
		free(made.folders[i]);
	}
	free(made.folders);
	took = clock_ns(CLOCK_MONOTONIC) - begin;
	if (made.nr)
		rest_until(activity, begin + (REST + 1) * took);
}

static void on_rested(void *context)
{
	struct activity *activity = context;

	activity->cgroup_watch.again = NULL;
	loop_listen(activity->cgroup_watch.noticed, POLLIN);
}

static void rest_until(struct activity *activity, __u64 ns)
{
	struct cgroup_watch *watch = &activity->cgroup_watch;

	loop_listen(watch->noticed, 0);
	if (!watch->again)
		watch->again = loop_at(activity->session->loop, ns, on_rested, activity);
}

static bool note_path(void *cgroups, const char *path, __u64 id)
{
	cgroups_note(cgroups, id, path);
	return true;
}

void cgroup_watch_begin(struct activity *activity)
{
	size_t nr = activity->plan.target.nr_cgroups;

	activity->cgroup_watch = (struct cgroup_watch){
		.nr = nr, .list = xcalloc(nr + 1, sizeof(struct watched_cgroup)), .untold = json_array()};
	activity->plan.target.keeps_places = activity->options->repeats || activity->plan.expectations.nr;
	for (size_t i = 0; i < nr; i++)
		if (!activity->plan.target.cgroups[i].gone)
			note_cgroup(activity, i);
	activity->cgroup_watch.follows = activity->plan.target.nr_patterns && is_seen_early(activity) &&
					 names_follow_cgroups(activity->session->names);
	/* The paths of those that are there already. */
	if (activity->cgroup_watch.follows)
		cgroups_walk(activity->session->host.cgroup_mount, "", 0, note_path,
			     activity->session->host.cgroups);
}

/* The next execution finds them again. */
static void forget_found(struct target *target)
{
	for (size_t i = 0; i < target->nr_cgroups; i++)
		if (target->cgroups[i].found)
			target->cgroups[i].gone = target->cgroups[i].vacant = target->cgroups[i].past = true;
}

void cgroup_watch_end(struct activity *activity)
{
	forget_found(&activity->plan.target);
	if (activity->cgroup_watch.follows)
		names_follow_cgroups_no_more(activity->session->names);
	cgroup_notices_close(activity->cgroup_watch.notices);
	json_decref(activity->cgroup_watch.untold);
	free(activity->cgroup_watch.list);
	activity->cgroup_watch = (struct cgroup_watch){0};
}

void cgroup_watch_first(struct activity *activity)
{
	if (!activity->plan.target.nr_patterns)
		return;
	activity->cgroup_watch.notices = cgroup_notices_open();
	cgroup_watch_look(activity);
}

/* Tells what the first search has found. */
static void tell_first(struct activity *activity)
{
	struct cgroup_watch *watch = &activity->cgroup_watch;
	json_t *record;
	size_t i;

	watch->looked = true;
	json_array_foreach(watch->untold, i, record)
		activity_write(activity, json_incref(record));
	json_array_clear(watch->untold);
}

void cgroup_watch_wait(struct activity *activity)
{
	__u64 half = activity->options->interval_ms * 1000000 / 2;
	__u64 period = !half || half > LOOK_MOST_NS ? LOOK_MOST_NS
		       : half < LOOK_LEAST_NS	    ? LOOK_LEAST_NS
						    : half;

	if (!target_in_cgroups(&activity->plan.target))
		return;
	tell_first(activity);
	if (activity->cgroup_watch.notices)
		activity->cgroup_watch.noticed =
			loop_watch(activity->session->loop, cgroup_notices_fd(activity->cgroup_watch.notices),
				   POLLIN, on_notice, activity);
	activity->cgroup_watch.look =
		loop_every(activity->session->loop, clock_ns(CLOCK_MONOTONIC), period, on_look, activity);
}

void cgroup_watch_wait_no_more(struct activity *activity)
{
	struct cgroup_watch *watch = &activity->cgroup_watch;

	loop_remove(activity->session->loop, &watch->look);
	loop_remove(activity->session->loop, &watch->noticed);
	loop_remove(activity->session->loop, &watch->again);
}

void cgroup_watch_next(struct activity *activity)
{
	if (counters_by_switches(activity->counters))
		keep_sums(activity, CGROUP_NO_CGROUP - 1);
	activity->cgroup_watch.late = activity->cgroup_watch.late_ns = activity->cgroup_watch.unseen = 0;
	activity->cgroup_watch.unknown = 0;
	for (size_t i = 0; i < activity->cgroup_watch.nr; i++) {
		activity->cgroup_watch.list[i].missed = activity->cgroup_watch.list[i].away;
		activity->cgroup_watch.list[i].late = false;
		activity->cgroup_watch.list[i].late_ns = 0;
		activity->cgroup_watch.list[i].reported = true;
		activity->plan.target.cgroups[i].vacant = activity->plan.target.cgroups[i].gone;
	}
}

json_t *activity_cgroups_late(const struct activity *activity, int of)
{
	const struct cgroup_watch *watch = &activity->cgroup_watch;
	__u64 cgroups = of < 0 ? watch->late : watch->list[of].late;
	__u64 ns = of < 0 ? watch->late_ns : watch->list[of].late_ns;
	__u64 unseen = watch->unseen + watch->unknown;

	if (!cgroups && !unseen)
		return NULL;
	return json_pack("{s:I, s:I, s:I}", "cgroups", (json_int_t)cgroups, "cpu_ns", (json_int_t)ns,
			 "unseen", (json_int_t)unseen);
}
