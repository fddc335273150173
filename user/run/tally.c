// SPDX-License-Identifier: GPL-2.0-only
#include "run/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/files.h"
#include "record/record.h"

#define NO_ROW ((size_t)-1)

void tally_begin(struct tally *tally, const struct plan *plan, const struct host *host)
{
	*tally = (struct tally){.plan = plan, .host = host};
}

void tally_release(struct tally *tally)
{
	for (size_t i = 0; i < tally->nr; i++) {
		free(tally->rows[i].now);
		free(tally->rows[i].since);
		free(tally->rows[i].has);
	}
	free(tally->rows);
	free(tally->row_of);
	*tally = (struct tally){0};
}

/* --- rows ------------------------------------------------------------------------------------- */

static struct place_key key_of(const struct tally *tally, const struct place *place)
{
	unsigned int per = tally->plan->target.per;
	struct topology at = place->cpu >= 0 ? host_topology(tally->host, place->cpu)
					     : (struct topology){-1, -1, -1};

	/* The number of a core is its socket's own. */
	return (struct place_key){
		.cpu = per & PER_CPU ? place->cpu : -1,
		.cgroup = per & PER_CGROUP ? place->cgroup : -1,
		.at = {
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
		.now = calloc(events, sizeof(struct count)),
		.since = calloc(events, sizeof(struct count)),
		.has = calloc(events, sizeof(bool)),
	};

	if (key->tid >= 0)
		slurp(tally->host, row.comm, sizeof(row.comm), "/proc/%d/comm", key->tid);
	tally->rows = realloc(tally->rows, (tally->nr + 1) * sizeof(row));
	tally->rows[tally->nr] = row;
	return tally->nr++;
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

/* A place gets its row when it is first open: of a CPU that is offline nothing says where it is. */
static void find_rows(struct tally *tally, const struct counters *counters)
{
	const struct places *places = counters_places(counters);

	if (!tally->row_of) {
		tally->row_of = malloc((places->nr + 1) * sizeof(*tally->row_of));
		for (size_t p = 0; p < places->nr; p++)
			tally->row_of[p] = NO_ROW;
	}
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

/* --- counts ----------------------------------------------------------------------------------- */

/* A pinned event that never ran can't be read: it stays at zero, not counted. */
static void add_place(struct tally *tally, struct counters *counters, size_t place)
{
	struct tally_row *row = &tally->rows[tally->row_of[place]];

	for (size_t i = 0; i < tally->plan->events.nr; i++) {
		struct count one;

		if (!counters_has(counters, i, place))
			continue;
		counters_read_at(counters, i, place, &one);
		row->now[i].value += one.value;
		row->now[i].enabled_ns += one.enabled_ns;
		row->now[i].running_ns += one.running_ns;
	}
}

void tally_read(struct tally *tally, struct counters *counters)
{
	size_t events = tally->plan->events.nr;

	find_rows(tally, counters);
	for (size_t r = 0; r < tally->nr; r++) {
		memcpy(tally->rows[r].since, tally->rows[r].now, events * sizeof(struct count));
		memset(tally->rows[r].now, 0, events * sizeof(struct count));
	}
	for (size_t p = 0; p < counters_places(counters)->nr; p++)
		if (tally->row_of[p] != NO_ROW)
			add_place(tally, counters, p);
	for (size_t r = 0; r < tally->nr; r++)
		for (size_t i = 0; i < events; i++) {
			const struct count *now = &tally->rows[r].now[i];
			struct count *since = &tally->rows[r].since[i];

			*since = (struct count){now->value - since->value,
						now->enabled_ns - since->enabled_ns,
						now->running_ns - since->running_ns};
		}
}

void tally_restart(struct tally *tally)
{
	for (size_t r = 0; r < tally->nr; r++)
		memset(tally->rows[r].now, 0, tally->plan->events.nr * sizeof(struct count));
	free(tally->row_of);
	tally->row_of = NULL;
}

void tally_put(json_t *record, const struct tally *tally, const struct tally_row *row)
{
	const struct place_key *key = &row->key;
	const struct {
		const char *name;
		int number;
	} numbers[] = {
		{"cpu", key->cpu},      {"node", key->at.node}, {"socket", key->at.socket},
		{"core", key->at.core}, {"tid", key->tid},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].number >= 0)
			json_object_set_new(record, numbers[i].name, json_integer(numbers[i].number));
	if (row->comm[0])
		json_object_set_new(record, "comm", value_text(row->comm, sizeof(row->comm)));
	if (key->cgroup >= 0)
		json_object_set_new(record, "cgroup",
				    value_text(tally->plan->target.cgroups[key->cgroup].name, 1024));
}
