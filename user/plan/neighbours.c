// SPDX-License-Identifier: GPL-2.0-only
#include "plan/neighbours.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

/* PMUs by the beginning of their names: uncore_cbox_0, cstate_core, … (arch/x86/events/ of Linux). */
static const struct known_neighbour {
	const char *begins;
	struct neighbour neighbour;
} known[] = {
	{"uncore", {"socket", "a package has one for all its cores: its cache, its memory controller"}},
	{"power", {"socket", "a package has one for all its cores"}},
	{"cstate_pkg", {"socket", "a package has one for all its cores"}},
	{"cstate_core", {"core", "a core has one for both of its threads"}},
	{"msr", {"cpu", "each CPU has its own; for a process it counts while the process runs there"}},
};

/* For counters without a Linux driver, by enum unit_scope. */
static const struct neighbour of_units[] = {
	[UNIT_THREAD] = {"cpu", "each CPU has its own"},
	[UNIT_CORE] = {"core", "a core has one for both of its threads"},
	[UNIT_PACKAGE] = {"socket", "a package has one for all its cores"},
};

static const struct neighbour others = {"shared", "several CPUs share it, and one counts for them"};

static const struct pmu *pmu_of(const struct event *event, const struct host *host)
{
	const struct pmu *pmu = host->pmus;

	while (pmu && pmu->type != event->attr.type)
		pmu = pmu->next;
	return pmu;
}

const struct neighbour *neighbour_of(const struct event *event, const struct host *host)
{
	const struct pmu *pmu = event->sideless ? pmu_of(event, host) : NULL;

	if (!pmu)
		return NULL;
	if (pmu->unit)
		return &of_units[pmu->unit->scope];
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strncmp(pmu->name, known[i].begins, strlen(known[i].begins)))
			return &known[i].neighbour;
	return event->cpus ? &others : NULL;
}

/* --- refusals --------------------------------------------------------------------------------- */

static int refused(const struct event *event, struct refusal *refusal)
{
	return refuse(refusal, STATUS_USAGE, "event '%s'", event->name);
}

static int check_target(const struct event *event, const struct target *target, const struct host *host,
			struct refusal *refusal)
{
	const char *words = neighbour_of(event, host)->words;
	char own[256], asked[128];

	if (!target->cpus_given || target_in_cgroups(target)) {
		refused(event, refusal);
		refusal->error = EINVAL;
		because(refusal,
			"its counter does not belong to a %s: %s, and it counts everything that happens "
			"there",
			target_in_cgroups(target) ? "cgroup" : "process", words);
		return instead(refusal, "count the CPUs %s",
			       target->command ? "while the command runs: -a -- COMMAND"
					       : "for a time: -a --duration SECONDS");
	}
	if (target_counts(target, event->cpus))
		return 0;
	refused(event, refusal);
	refusal->error = EINVAL;
	because(refusal, "%s; CPUs %s count for the others, and none of them is in -C %s", words,
		cpus_print(event->cpus, own, sizeof(own)), cpus_print(&target->cpus, asked, sizeof(asked)));
	return instead(refusal, "-C %s, or -a", own);
}

static int check_sampling(const struct event *event, struct refusal *refusal)
{
	if (!event->attr.sample_period)
		return 0;
	refused(event, refusal);
	refusal->error = EINVAL;
	because(refusal, "its counter raises no interrupt, so that it can't be sampled");
	return instead(refusal, "count it: nhmtap stat -a -I 1000 -e '%s'", event->name);
}

/* Refuses groups of several PMUs. The kernel refuses most of them; those that it accepts would be counted on
 * different CPUs. */
static int check_group(const struct events *events, size_t i, struct refusal *refusal)
{
	const struct event *event = &events->list[i];

	for (size_t j = 0; event->group >= 0 && j < events->nr; j++) {
		const struct event *other = &events->list[j];

		if (other->group != event->group || other->attr.type == event->attr.type)
			continue;
		refused(event, refusal);
		refusal->error = EINVAL;
		because(refusal,
			"it is in a group with '%s', and no CPU counts both as one: they are of "
			"different PMUs",
			other->name);
		return instead(refusal, "take it out of the braces; it is then counted in the same run");
	}
	return 0;
}

int neighbours_check(const struct events *events, const struct target *target, const struct host *host,
		     struct refusal *refusal)
{
	for (size_t i = 0; i < events->nr; i++) {
		const struct event *event = &events->list[i];

		if (event->cpus &&
		    (check_sampling(event, refusal) || check_target(event, target, host, refusal) ||
		     check_group(events, i, refusal)))
			return -1;
	}
	return 0;
}
