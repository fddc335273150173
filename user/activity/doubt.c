// SPDX-License-Identifier: GPL-2.0-only
#include "activity/doubt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "activity/plausible.h"
#include "activity/warning.h"
#include "base/array.h"
#include "base/memory.h"
#include "host/idle.h"

struct doubts {
	size_t nr_rows;
	struct count *counts; /* of the stretch that is not judged yet: those of all events of each row */
	bool *told;	      /* per event */
	struct idle idle;     /* of the CPUs, when that stretch began */
};

void doubts_release(struct doubts *doubts)
{
	if (!doubts)
		return;
	free(doubts->counts);
	free(doubts->told);
	idle_release(&doubts->idle);
	free(doubts);
}

static struct count *counts_of_row(struct doubts *doubts, size_t nr, size_t row)
{
	if (!doubts->told)
		doubts->told = xcalloc(nr, sizeof(*doubts->told));
	if (row >= doubts->nr_rows) {
		doubts->counts = xrealloc(doubts->counts, (row + 1) * nr * sizeof(*doubts->counts));
		memset(doubts->counts + doubts->nr_rows * nr, 0,
		       (row + 1 - doubts->nr_rows) * nr * sizeof(*doubts->counts));
		doubts->nr_rows = row + 1;
	}
	return doubts->counts + row * nr;
}

/* --- what an event counts --------------------------------------------------------------------- */

/* Unhalted core cycles and retired instructions: the kernel's names, and the codes of the architecture,
 * without a threshold or an edge. */
static enum counted_kind kind_of(const struct event *event)
{
	static const struct {
		__u32 type;
		__u64 config;
		enum counted_kind kind;
	} known[] = {
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, COUNTS_CYCLES},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, COUNTS_INSTRUCTIONS},
		{PERF_TYPE_RAW, 0x3c, COUNTS_CYCLES},
		{PERF_TYPE_RAW, 0xc0, COUNTS_INSTRUCTIONS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (event->attr.type == known[i].type && event->attr.config == known[i].config)
			return known[i].kind;
	return COUNTS_OTHERS;
}

static unsigned int sides_counted(const struct perf_event_attr *attr)
{
	return attr->exclude_user | attr->exclude_kernel << 1 | attr->exclude_guest << 2 |
	       attr->exclude_host << 3 | attr->exclude_hv << 4;
}

/* Whether this machine may run guests, by the users of the kernel's modules. A guest's processor can be
 * halted while its thread counts as running. */
static bool may_have_guests(void)
{
	static const char *const modules[] = {"kvm_intel", "kvm_amd"};
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
		char path[64];
		int users = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/sys/module/%s/refcnt", modules[i]);
		file = fopen(path, "re");
		if (file) {
			any = any || fscanf(file, "%d", &users) != 1 || users;
			fclose(file);
		}
		snprintf(path, sizeof(path), "/sys/module/%s", modules[i]);
		any = any || (!file && !access(path, F_OK));
	}
	return any;
}

/* The times of CPUs run on while nothing runs there, and those of cgroups are not of one program. */
static bool is_of_programs(const struct activity *activity)
{
	const struct target *target = &activity->plan.target;

	return !target->cpus_given && !target_in_cgroups(target);
}

static struct suspect suspect_of(const struct activity *activity, const struct event *event,
				 const struct count *count)
{
	unsigned int sides = sides_counted(&event->attr);

	return (struct suspect){
		.kind = event->never[0] || event->at_least ? COUNTS_OTHERS : kind_of(event),
		.name = event->name,
		.count = *count,
		.sides = sides,
		.busy = is_of_programs(activity) && !(sides & 0xb),
	};
}

/* Whether counts are compared with the time in which CPUs were not idle. Those of several rows begin at other
 * times. */
static bool is_compared_with_idle(const struct activity *activity, const struct events *events)
{
	const struct target *target = &activity->plan.target;
	bool any = false;

	for (size_t i = 0; i < events->nr; i++)
		any = any || kind_of(&events->list[i]) != COUNTS_OTHERS;
	return any && target->cpus_given && !target->per && !target_in_cgroups(target);
}

static void begin_stretch(struct activity *activity, const struct events *events)
{
	if (is_compared_with_idle(activity, events))
		idle_read(&activity->doubts->idle);
}

void doubt_begin(struct activity *activity)
{
	if (!activity->doubts)
		activity->doubts = xcalloc(1, sizeof(*activity->doubts));
	begin_stretch(activity, &activity->plan.events);
}

/* For how long CPUs were not idle while an event counted, at least; 0: not known. They may have been idle
 * just then for all the time that they were idle. */
static __u64 busy_of(const struct activity *activity, const struct events *events, const struct count *count)
{
	const struct target *target = &activity->plan.target;
	double nr = cpus_count(&target->cpus), idle;

	if (!is_compared_with_idle(activity, events))
		return 0;
	idle = idle_beyond(&activity->doubts->idle, &target->cpus) + nr / sysconf(_SC_CLK_TCK);
	return fmax(0, count->running_ns - 1e9 * idle);
}

/* --- judging ---------------------------------------------------------------------------------- */

static bool judge_count(const struct activity *activity, const struct events *events, size_t i,
			const struct count *counts, char *why, size_t size)
{
	struct suspect one = suspect_of(activity, &events->list[i], &counts[i]);
	__u64 busy;

	if (one.kind == COUNTS_OTHERS)
		return false;
	for (size_t j = 0; j < events->nr; j++) {
		struct suspect other = suspect_of(activity, &events->list[j], &counts[j]);

		if (j != i && implausible_pair(&one, &other, why, size))
			return true;
	}
	/* CPUs may count while they are idle, too, but not less than what runs on them. */
	busy = one.sides & 0xb ? 0 : busy_of(activity, events, &one.count);
	if (one.count.value < busy) {
		one.busy = true;
		one.count.enabled_ns = one.count.running_ns = busy;
	}
	return implausible(&one, why, size) && !(one.busy && may_have_guests());
}

/* The idle time of each CPU is known to a tick or so. */
static bool is_long_enough(const struct activity *activity, const struct count *counts, size_t nr)
{
	const struct target *target = &activity->plan.target;
	__u64 least = target->cpus_given && !target->per ? cpus_count(&target->cpus) * PLAUSIBLE_NS * 12 / 10
							 : PLAUSIBLE_NS;

	for (size_t i = 0; i < nr; i++)
		if (counts[i].running_ns >= least)
			return true;
	return false;
}

int doubt_counts(struct activity *activity, const struct events *events, size_t row,
		 const struct count *since, bool last)
{
	size_t nr = events->nr;
	struct count *counts;
	char why[300];
	int err = 0;

	if (activity->plan.target.by_switches || activity->plan.target.by_samples || !nr)
		return 0;
	counts = counts_of_row(activity->doubts, nr, row);
	for (size_t i = 0; i < nr; i++)
		count_add(&counts[i], &since[i]);
	if (!last && !is_long_enough(activity, counts, nr))
		return 0;
	for (size_t i = 0; i < nr && !err; i++) {
		if (activity->doubts->told[i] || !judge_count(activity, events, i, counts, why, sizeof(why)))
			continue;
		activity->doubts->told[i] = true;
		err = warn_of_doubt(activity, events->list[i].name, why);
	}
	memset(counts, 0, nr * sizeof(*counts));
	begin_stretch(activity, events);
	return err;
}
