// SPDX-License-Identifier: GPL-2.0-only
#include "activity/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "host/files.h"
#include "host/processes.h"
#include "metric/pace.h"
#include "record/owner.h"
#include "record/record.h"

#define NO_ROW ((size_t)-1)

/* The kernel rotates events this many times between two readings, so that each was on a counter. */
#define TURNS_A_LOOK 2
#define TURN_MS	     4 /* the kernel's default: PERF_CPU_HRTIMER, kernel/events/core.c */

/* Longest time between readings while no event shares its counter: there is no error to bound, and it
 * suffices to notice when sharing begins. */
#define UNSHARED_MOST_NS 1000000000

/* First time between readings. 0 if there are only software events, which have no counters to share. */
static __u64 first_span_ns(const struct plan *plan, struct host *host)
{
	const struct pmu *pmu = host_core_pmu(host);
	int turn_ms = pmu && pmu->mux_interval_ms > 0 ? pmu->mux_interval_ms : TURN_MS;

	for (size_t i = 0; i < plan->events.nr; i++)
		if (plan->events.list[i].attr.type != PERF_TYPE_SOFTWARE)
			return TURNS_A_LOOK * turn_ms * 1000000ULL;
	return 0;
}

void tally_begin(struct tally *tally, const struct plan *plan, struct host *host)
{
	*tally = (struct tally){
		.plan = plan,
		.host = host,
		.span_ns = first_span_ns(plan, host),
		.began_ns = clock_ns(CLOCK_MONOTONIC),
		.began_stamp = time_stamp(),
		.most_per_cycle = xcalloc(plan->events.nr + 1, sizeof(double)),
		.paces = xcalloc(plan->events.nr + 1, sizeof(double)),
		.counted = xcalloc(plan->events.nr + 1, sizeof(bool)),
	};
	for (size_t i = 0; i < plan->events.nr; i++)
		tally->most_per_cycle[i] = event_most_per_cycle(&plan->events.list[i], host);
}

void tally_release(struct tally *tally)
{
	for (size_t i = 0; i < tally->nr; i++) {
		struct tally_row *row = &tally->rows[i];

		free(row->now);
		free(row->reported);
		free(row->since);
		free(row->turn);
		free(row->has);
		turns_close(&row->turns);
		turns_close(&row->interval_turns);
	}
	free(tally->rows);
	free(tally->row_of);
	free(tally->most_per_cycle);
	free(tally->paces);
	free(tally->counted);
	*tally = (struct tally){0};
}

/* --- rows ------------------------------------------------------------------------------------- */

static struct place_key key_of(const struct tally *tally, const struct place *place)
{
	unsigned int per = tally->plan->target.per;
	bool apart =
		per & PER_CGROUP || (place->cgroup >= 0 && tally->plan->target.cgroups[place->cgroup].of_any);
	struct topology at =
		place->cpu >= 0 ? host_topology(tally->host, place->cpu) : (struct topology){-1, -1, -1};

	/* Core numbers are unique only within a socket, so both are needed. */
	return (struct place_key){
		.cpu = per & PER_CPU ? place->cpu : -1,
		.cgroup = apart ? place->cgroup : -1,
		.at =
			{
				.core = per & PER_CORE ? at.core : -1,
				.socket = per & (PER_SOCKET | PER_CORE) ? at.socket : -1,
				.node = per & PER_NODE ? at.node : -1,
			},
		.tid = per & PER_THREAD ? place->tid : -1,
	};
}

static size_t add_row(struct tally *tally, const struct place_key *key)
{
	size_t events = tally->plan->events.nr;
	struct tally_row row = {
		.key = *key,
		.now = xcalloc(events, sizeof(struct count)),
		.reported = xcalloc(events, sizeof(struct count)),
		.since = xcalloc(events, sizeof(struct count)),
		.turn = xcalloc(events, sizeof(struct count)),
		.has = xcalloc(events, sizeof(bool)),
	};

	turns_open(&row.turns, events, tally->span_ns, tally->span_ns / TURNS_A_LOOK);
	turns_open(&row.interval_turns, events, tally->span_ns, tally->span_ns / TURNS_A_LOOK);
	row.turns.paces = row.interval_turns.paces = tally->paces;
	if (key->tid >= 0)
		slurp(tally->host, row.comm, sizeof(row.comm), "/proc/%d/comm", proc_number(key->tid));
	*xappend(tally->rows, tally->nr) = row;
	return tally->nr - 1;
}

static size_t row_of(struct tally *tally, const struct place *place)
{
	struct place_key key = key_of(tally, place);
	size_t i = 0;

	while (i < tally->nr && memcmp(&tally->rows[i].key, &key, sizeof(key)))
		i++;
	if (i == tally->nr)
		i = add_row(tally, &key);
	if (place->cpu >= 0)
		cpus_add(&tally->rows[i].cpus, place->cpu);
	return i;
}

/* Assigns rows to places. A place gets its row when it is first open, because the kernel does not tell the
 * topology of offline CPUs. */
static void find_rows(struct tally *tally, const struct counters *counters)
{
	const struct places *places = counters_places(counters);

	if (tally->nr_places < places->nr)
		tally->row_of = xrealloc(tally->row_of, places->nr * sizeof(*tally->row_of));
	for (; tally->nr_places < places->nr; tally->nr_places++)
		tally->row_of[tally->nr_places] = NO_ROW;
	for (size_t p = 0; p < places->nr; p++) {
		struct tally_row *row;

		if (tally->row_of[p] != NO_ROW || !places->list[p].seen)
			continue;
		tally->row_of[p] = row_of(tally, &places->list[p]);
		row = &tally->rows[tally->row_of[p]];
		for (size_t i = 0; i < tally->plan->events.nr; i++)
			row->has[i] = row->has[i] || counters_has(counters, i, p);
	}
}

/* The same if counts are summed up per cgroup at switches: a row for each of the target's cgroups, by its
 * index. */
static void find_cgroup_rows(struct tally *tally)
{
	const struct target *target = &tally->plan->target;

	if (tally->nr_places < target->nr_cgroups)
		tally->row_of = xrealloc(tally->row_of, target->nr_cgroups * sizeof(*tally->row_of));
	for (; tally->nr_places < target->nr_cgroups; tally->nr_places++) {
		struct place place = {.cpu = -1, .tid = -1, .cgroup = tally->nr_places};
		struct tally_row *row;

		tally->row_of[tally->nr_places] = row_of(tally, &place);
		row = &tally->rows[tally->row_of[tally->nr_places]];
		row->cpus = target->cpus;
		for (size_t i = 0; i < tally->plan->events.nr; i++)
			row->has[i] = true;
	}
}

/* --- counts ----------------------------------------------------------------------------------- */

/* Adds the last counts of a place. A pinned event that never ran can't be read; it stays 0 and
 * "not counted". */
static void add_place(struct tally *tally, const struct counters *counters, size_t place)
{
	struct tally_row *row = &tally->rows[tally->row_of[place]];

	for (size_t i = 0; i < tally->plan->events.nr; i++) {
		struct count one;

		/* What can't count has counted for no time. */
		if (!counters_has(counters, i, place) || tally->plan->events.list[i].never[0])
			continue;
		counters_last(counters, i, place, &one);
		count_add(&row->turn[i], &one);
	}
}

static void read_cgroups(struct tally *tally, const struct counters *counters)
{
	for (size_t c = 0; c < tally->nr_places; c++)
		for (size_t i = 0; i < tally->plan->events.nr; i++) {
			struct count one;

			if (tally->plan->events.list[i].never[0])
				continue;
			counters_last_cgroup(counters, i, c, &one);
			count_add(&tally->rows[tally->row_of[c]].turn[i], &one);
		}
}

static void read_places(struct tally *tally, struct counters *counters)
{
	counters_read_all(counters);
	for (size_t p = 0; p < counters_places(counters)->nr; p++)
		if (tally->row_of[p] != NO_ROW)
			add_place(tally, counters, p);
}

/* A core may be faster than its time stamp counter, by turbo or because it is emulated; a count can show how
 * much at least. The times of less than half a turn are too rough for that. */
static void note_clock(struct tally *tally, size_t event, const struct count *turn)
{
	double most = tally->most_per_cycle[event] * turn->running_ns;

	if (turn->running_ns >= tally->span_ns / TURNS_A_LOOK / 2 && turn->value > tally->clock * most)
		tally->clock = turn->value / most;
}

/* Computes what was counted since the last reading; never negative. */
static void end_look(struct tally *tally, struct tally_row *row, __u64 ns)
{
	for (size_t i = 0; i < tally->plan->events.nr; i++) {
		struct count *turn = &row->turn[i], *now = &row->now[i];

		*turn = count_beyond(turn, now);
		count_add(now, turn);
		tally->shared = tally->shared || count_is_estimate(now);
	}
	if (!tally->span_ns)
		return;
	for (size_t i = 0; i < tally->plan->events.nr; i++)
		note_clock(tally, i, &row->turn[i]);
	turns_add(&row->turns, row->turn, ns);
	turns_add(&row->interval_turns, row->turn, ns);
}

static void restart_row(const struct tally *tally, struct tally_row *row)
{
	size_t size = tally->plan->events.nr * sizeof(struct count);

	memset(row->now, 0, size);
	memset(row->reported, 0, size);
	turns_clear(&row->turns);
}

static const struct cgroup *cgroup_of(const struct tally *tally, const struct tally_row *row)
{
	return row->key.cgroup >= 0 ? &tally->plan->target.cgroups[row->key.cgroup] : NULL;
}

/* Resets rows whose cgroup was replaced by another one. */
static void follow_cgroups(struct tally *tally)
{
	for (size_t r = 0; r < tally->nr; r++) {
		const struct cgroup *cgroup = cgroup_of(tally, &tally->rows[r]);

		if (!cgroup || cgroup->generation == tally->rows[r].generation)
			continue;
		for (size_t i = 0; i < tally->plan->events.nr; i++)
			tally->counted[i] = tally->counted[i] || tally->rows[r].now[i].running_ns;
		restart_row(tally, &tally->rows[r]);
		tally->rows[r].generation = cgroup->generation;
	}
}

bool tally_has(const struct tally *tally, const struct tally_row *row)
{
	const struct cgroup *cgroup = cgroup_of(tally, row);

	return !cgroup || !cgroup->vacant;
}

/* The longer the time since the beginning, the better the clock is known. */
static void set_paces(struct tally *tally, __u64 now)
{
	double cycles =
		fmax(cycles_per_ns(tally->began_stamp, time_stamp(), now - tally->began_ns), tally->clock);

	for (size_t i = 0; i < tally->plan->events.nr; i++)
		tally->paces[i] = cycles * tally->most_per_cycle[i];
}

/* Whether events have shared counters since the previous reading. */
static bool shared_now(const struct tally *tally, const struct counters *counters)
{
	for (size_t r = 0; r < tally->nr; r++)
		for (size_t i = 0; i < tally->plan->events.nr; i++)
			if (counters_take_turns(counters, i) && count_is_estimate(&tally->rows[r].turn[i]))
				return true;
	return false;
}

static void read_all(struct tally *tally, struct counters *counters)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC),
	      since = tally->looked_ns ? now - tally->looked_ns : tally->span_ns;

	if (counters_by_switches(counters))
		find_cgroup_rows(tally);
	else
		find_rows(tally, counters);
	follow_cgroups(tally);
	for (size_t r = 0; r < tally->nr; r++) {
		memset(tally->rows[r].turn, 0, tally->plan->events.nr * sizeof(struct count));
		if (tally->told)
			turns_clear(&tally->rows[r].interval_turns);
	}
	tally->told = false;
	if (counters_by_switches(counters))
		read_cgroups(tally, counters);
	else
		read_places(tally, counters);
	for (size_t r = 0; r < tally->nr; r++)
		end_look(tally, &tally->rows[r], since);
	set_paces(tally, now);
	tally->looked_ns = now;
}

void tally_look(struct tally *tally, struct counters *counters)
{
	read_all(tally, counters);
	tally->alone = counters_mix_turns(counters, tally->alone || shared_now(tally, counters));
}

/* About `ns`, up to a quarter less or more, so that readings aren't in step with what is measured. */
static __u64 about(__u64 ns)
{
	return ns - ns / 4 + (clock_ns(CLOCK_MONOTONIC) * 0x9e3779b97f4a7c15ULL >> 32) % (ns / 2 + 1);
}

/* Each interval must have enough readings; over a whole run, no more are needed than are kept. */
__u64 tally_pace(const struct tally *tally, __u64 every_ns, __u64 interval_ms)
{
	__u64 of_interval = interval_ms * 1000000 / (2 * TURNS_LEAST);
	__u64 of_run = tally->nr ? tally->rows[0].turns.span_ns : every_ns;

	if (!tally->span_ns)
		return 0;
	if (!tally->shared)
		return every_ns < UNSHARED_MOST_NS ? 2 * every_ns : every_ns;
	if (tally->alone)
		return about(tally->span_ns / TURNS_A_LOOK * 3 / 4);
	if (of_interval && of_interval < of_run)
		return about(of_interval > tally->span_ns ? of_interval : tally->span_ns);
	return about(of_run);
}

/* Makes a row without counts if there was no place to count at. So each event has a record that says why. */
static void need_row(struct tally *tally)
{
	static const struct place nowhere = {.cpu = -1, .tid = -1, .cgroup = -1};
	size_t row;

	if (tally->nr)
		return;
	row = row_of(tally, &nowhere);
	for (size_t i = 0; i < tally->plan->events.nr; i++)
		tally->rows[row].has[i] = true;
}

void tally_read(struct tally *tally, struct counters *counters, bool last)
{
	read_all(tally, counters);
	if (last)
		need_row(tally);
	/* The next interval begins with all of them, so that what no longer shares a counter is known
	 * exactly. */
	tally->alone = counters_mix_turns(counters, false);
	for (size_t r = 0; r < tally->nr; r++)
		for (size_t i = 0; i < tally->plan->events.nr; i++) {
			struct tally_row *row = &tally->rows[r];

			row->since[i] = count_beyond(&row->now[i], &row->reported[i]);
			row->reported[i] = row->now[i];
		}
	tally->told = true;
}

void tally_void(struct tally *tally)
{
	for (size_t r = 0; r < tally->nr; r++)
		for (size_t i = 0; i < tally->plan->events.nr; i++) {
			__u64 *now = &tally->rows[r].now[i].running_ns,
			      *since = &tally->rows[r].since[i].running_ns;

			tally->counted[i] = tally->counted[i] || *now > *since;
			*now = *since = 0;
		}
}

void tally_restart(struct tally *tally)
{
	for (size_t r = 0; r < tally->nr; r++)
		restart_row(tally, &tally->rows[r]);
	free(tally->row_of);
	tally->row_of = NULL;
	tally->nr_places = 0;
	tally->looked_ns = 0;
	tally->shared = tally->alone = false;
}

void tally_add(struct fields *fields, const struct tally *tally, const struct tally_row *row)
{
	const struct place_key *key = &row->key;
	const struct {
		const char *name;
		int number;
	} numbers[] = {
		{"cpu", key->cpu},	{"node", key->at.node}, {"socket", key->at.socket},
		{"core", key->at.core}, {"tid", key->tid},
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i].number >= 0)
			fields_number(fields, numbers[i].name, numbers[i].number);
	if (row->comm[0])
		fields_value(fields, "comm", value_text(row->comm, sizeof(row->comm)));
	if (key->cgroup >= 0) {
		const struct cgroup *cgroup = &tally->plan->target.cgroups[key->cgroup];

		fields_value(fields, "cgroup", value_text(cgroup->name, 1024));
		owner_add(fields, cgroup->path + strlen(tally->host->cgroup_mount));
	}
}

void tally_put(json_t *record, const struct tally *tally, const struct tally_row *row)
{
	struct fields fields;

	fields_begin(&fields);
	tally_add(&fields, tally, row);
	fields_put(&fields, record);
	fields_clear(&fields);
}
