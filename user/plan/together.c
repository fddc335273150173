// SPDX-License-Identifier: GPL-2.0-only
#include "plan/together.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "event/placement.h"
#include "metric/fit.h"
#include "plan/rules.h"

/* Registers that a core's threads share, named as in rules_register(). */
static const struct contest {
	const char *reg, *what, *why;
} contests[] = {
	{"off-core register", "offcore_rsp",
	 "a core counts off-core responses by one register or two, for both of its threads: more values than "
	 "that wait for each other, and on one of the threads they may never run"},
	{"load-latency threshold", "load_latency",
	 "a core has one load-latency threshold, for both of its threads: events with another one wait"},
	{"branch filter", "branch_filter",
	 "a core has one filter for its branch records: events with another one wait"},
};
#define CONTESTS ARRAY_SIZE(contests)

/* Whether both may run on the same core. Tasks may run on any. */
static bool meet(const struct target *a, const struct target *b, const struct host *host)
{
	if (!a->cpus_given || !b->cpus_given)
		return true;
	for (int cpu = cpus_next(&a->cpus, 0); cpu >= 0; cpu = cpus_next(&a->cpus, cpu + 1)) {
		bool own = host->events && host->events->kernel && host->events->kernel->own_registers;
		int sibling = own ? -1 : host_sibling(host, cpu);

		if (cpus_has(&b->cpus, cpu) || (sibling >= 0 && cpus_has(&b->cpus, sibling)))
			return true;
	}
	return false;
}

/* The values that plans need in registers of one kind. */
struct wanted {
	const char *reg;
	size_t registers; /* number per core; 0: no plan needs any */
	__u64 *values;	  /* without duplicates */
	size_t nr;
};

static bool wants(const struct wanted *wanted, __u64 value)
{
	for (size_t i = 0; i < wanted->nr; i++)
		if (wanted->values[i] == value)
			return true;
	return false;
}

static void add_wanted(struct wanted *wanted, const struct plan *plan, struct host *host)
{
	for (size_t i = 0; i < plan->events.nr; i++) {
		__u64 value;
		size_t registers = rules_register(&plan->events.list[i], wanted->reg, host, &value);

		if (!registers)
			continue;
		wanted->registers = registers;
		if (wants(wanted, value))
			continue;
		*xappend(wanted->values, wanted->nr) = value;
	}
}

/* Whether both plans need the register, and not just one and the same value. */
static bool values_differ(const struct plan *a, const struct plan *b, const char *reg, struct host *host)
{
	struct wanted of_a = {.reg = reg}, of_b = {.reg = reg};
	bool found = false;

	add_wanted(&of_a, a, host);
	add_wanted(&of_b, b, host);
	for (size_t i = 0; i < of_a.nr && of_b.nr && !found; i++)
		found = of_b.nr > 1 || of_a.nr > 1 || !wants(&of_b, of_a.values[i]);
	free(of_a.values);
	free(of_b.values);
	return found;
}

/* Whether the parties that may run on the same core as this one together need more values than a core has
 * registers. */
static bool too_many(const struct party *parties, size_t nr, size_t which, const char *reg, struct host *host)
{
	struct wanted wanted = {.reg = reg};
	bool found;

	for (size_t p = 0; p < nr; p++)
		if (meet(&parties[p].plan->target, &parties[which].plan->target, host))
			add_wanted(&wanted, parties[p].plan, host);
	found = wanted.nr > wanted.registers;
	free(wanted.values);
	return found;
}

/* Whether the plan has events on the core's counters; if `pinned`, such as keep theirs. */
static bool takes_counters(const struct plan *plan, struct host *host, bool pinned)
{
	for (size_t i = 0; i < plan->events.nr; i++)
		if (placement_choices(host, &plan->events.list[i]) &&
		    (!pinned || plan->events.list[i].attr.pinned))
			return true;
	return false;
}

/* Events that are to have counters at the same time. */
struct crowd {
	struct event events[PLACEMENT_MOST];
	size_t nr; /* more than PLACEMENT_MOST: too many */
	int counters[PLACEMENT_MOST];
};

static void join_crowd(struct crowd *crowd, const struct plan *plan, bool pinned, struct host *host)
{
	for (size_t i = 0; i < plan->events.nr && crowd->nr <= PLACEMENT_MOST; i++) {
		const struct event *event = &plan->events.list[i];

		if ((pinned && !event->attr.pinned) || !placement_choices(host, event))
			continue;
		if (crowd->nr < PLACEMENT_MOST)
			crowd->events[crowd->nr] = *event;
		crowd->nr++;
	}
}

static bool place_crowd(struct crowd *crowd, struct host *host)
{
	return crowd->nr <= PLACEMENT_MOST &&
	       placement_find(host, crowd->events, crowd->nr, counters_held(host), crowd->counters) < 0;
}

/* Whether all events of the parties that may run on the same core as this one can have a counter at the same
 * time. */
static bool all_fit(const struct party *parties, size_t nr, size_t which, struct host *host)
{
	struct crowd *crowd = xcalloc(1, sizeof(*crowd));
	bool fit;

	for (size_t p = 0; p < nr; p++)
		if (meet(&parties[p].plan->target, &parties[which].plan->target, host))
			join_crowd(crowd, parties[p].plan, false, host);
	fit = place_crowd(crowd, host);
	free(crowd);
	return fit;
}

unsigned long long together_held(const struct party *parties, size_t nr, size_t which, struct host *host)
{
	bool of_cpus = parties[which].plan->target.cpus_given;
	unsigned long long held = 0;
	struct crowd *crowd;

	if (!host->events)
		return 0;
	crowd = xcalloc(1, sizeof(*crowd));
	for (size_t p = 0; p < nr; p++)
		if (p != which && meet(&parties[p].plan->target, &parties[which].plan->target, host))
			join_crowd(crowd, parties[p].plan, of_cpus || !parties[p].plan->target.cpus_given,
				   host);
	if (place_crowd(crowd, host))
		for (size_t i = 0; i < crowd->nr; i++)
			held |= 1ULL << crowd->counters[i];
	free(crowd);
	return held;
}

static bool share_counters(const struct party *parties, size_t nr, size_t which, struct host *host,
			   struct turn *turn)
{
	*turn = (struct turn){TURN_COUNTERS, "their events are more than the core has counters", 0};
	if (!host->events || !takes_counters(parties[which].plan, host, false) ||
	    all_fit(parties, nr, which, host))
		return false;
	for (size_t p = 0; p < nr; p++) {
		if (p == which || !takes_counters(parties[p].plan, host, false) ||
		    !meet(&parties[p].plan->target, &parties[which].plan->target, host))
			continue;
		turn->with |= 1ULL << p;
		if (takes_counters(parties[p].plan, host, true))
			turn->why = "their events are more than the core has counters; those that are pinned "
				    "keep theirs, and the others wait for the rest";
	}
	return turn->with;
}

size_t together_turns(const struct party *parties, size_t nr, size_t which, struct host *host,
		      struct turn *turns)
{
	const struct plan *own = parties[which].plan;
	size_t found = 0;

	if (nr < 2)
		return 0;
	for (size_t c = 0; c < CONTESTS; c++) {
		struct turn turn = {contests[c].what, contests[c].why, 0};

		for (size_t p = 0; p < nr && too_many(parties, nr, which, contests[c].reg, host); p++)
			if (p != which && meet(&own->target, &parties[p].plan->target, host) &&
			    values_differ(own, parties[p].plan, contests[c].reg, host))
				turn.with |= 1ULL << p;
		if (turn.with)
			turns[found++] = turn;
	}
	found += share_counters(parties, nr, which, host, &turns[found]);
	return found;
}

/* --- what the kernel refuses ------------------------------------------------------------------ */

static bool traces(const struct plan *plan, const struct pmu *bts)
{
	for (size_t i = 0; bts && i < plan->events.nr; i++)
		if (plan->events.list[i].attr.type == bts->type)
			return true;
	return false;
}

/* Whether the plan uses the last branch record. Precise samples of level 2 are corrected by the last
 * branch. */
static bool takes_branches(const struct plan *plan)
{
	for (size_t i = 0; i < plan->events.nr; i++)
		if (plan->events.list[i].attr.branch_sample_type || plan->events.list[i].attr.precise_ip > 1)
			return true;
	return false;
}

int together_check(const struct party *parties, size_t nr, size_t which, struct host *host,
		   struct refusal *refusal)
{
	const struct plan *own = parties[which].plan;
	const struct pmu *bts;

	if (nr < 2)
		return 0;
	bts = host_pmu(host, "intel_bts");
	for (size_t p = 0; p < nr; p++) {
		const struct plan *other = parties[p].plan;

		if (p == which || !((traces(own, bts) && takes_branches(other)) ||
				    (traces(other, bts) && takes_branches(own))))
			continue;
		refuse(refusal, STATUS_REFUSED, "activity '%s' beside '%s'", parties[which].name,
		       parties[p].name);
		refusal->error = EBUSY;
		because(refusal, "the branch trace store and the last branch record, which precise samples "
				 "of level 2 take as well, exclude each other");
		according(refusal, "kernel, x86_add_exclusive()");
		return instead(refusal, "leave one of them to a session of its own, or sample with one p");
	}
	return 0;
}
