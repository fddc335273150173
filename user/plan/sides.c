// SPDX-License-Identifier: GPL-2.0-only
#include "plan/sides.h"

#include <stdio.h>
#include <string.h>

#include "host/tracepoints.h"
#include "plan/denial.h"
#include "tables/names.h"

static bool one_side(const struct perf_event_attr *attr)
{
	return attr->exclude_user || attr->exclude_kernel;
}

/* perf_tp_event_match(), kernel/events/core.c: it looks at exclude_kernel alone. */
static void sides_of_tracepoint(const struct event *event, const struct host *host, struct sides *sides)
{
	struct tracepoint tracepoint;

	sides->source = "perf_tp_event_match()";
	sides->sides = SIDES_KERNEL;
	if (!tracepoint_find(host, event->attr.config, &tracepoint)) {
		snprintf(sides->why, sizeof(sides->why),
			 "is passed in the kernel, unless it is that of a system call or a uprobe: which it "
			 "is can't be read from tracefs");
		return;
	}
	if (tracepoint.of_user)
		sides->sides = SIDES_IGNORED;
	snprintf(sides->why, sizeof(sides->why),
		 tracepoint.of_user ? "counts all of %.80s, on the kernel's side alone too"
				    : "is passed in the kernel alone (%.80s)",
		 tracepoint.name);
}

void sides_of(const struct event *event, const struct host *host, struct sides *sides)
{
	const struct generic_event *known = generic_event_of(event->attr.type, event->attr.config);

	*sides = (struct sides){.sides = SIDES_BOTH};
	if (event->attr.type == PERF_TYPE_TRACEPOINT) {
		/* tracefs has a file for each of some two thousand tracepoints. */
		if (one_side(&event->attr))
			sides_of_tracepoint(event, host, sides);
	} else if (known && known->sides != SIDES_BOTH) {
		*sides = (struct sides){.sides = known->sides, .source = known->sides_source};
		snprintf(sides->why, sizeof(sides->why), "%s", known->sides_why);
	}
}

bool sides_missed(const struct event *event, const struct sides *sides)
{
	return event->attr.exclude_kernel && sides->sides == SIDES_KERNEL;
}

bool sides_any_excluded(const struct event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	return attr->exclude_user || attr->exclude_kernel || attr->exclude_hv || attr->exclude_idle ||
	       attr->exclude_host || attr->exclude_guest;
}

bool sides_of_guests_ignored(const struct event *event)
{
	return event->attr.exclude_host &&
	       (event->attr.type == PERF_TYPE_SOFTWARE || event->attr.type == PERF_TYPE_TRACEPOINT);
}

bool sides_all_excluded(const struct event *event, const struct host *host)
{
	const struct perf_event_attr *attr = &event->attr;

	return attr->exclude_user && attr->exclude_kernel && !event->sideless &&
	       (attr->type == PERF_TYPE_SOFTWARE || !strcmp(host->machine, "x86_64"));
}

const char *sides_remedy(const struct host *host)
{
	return host->user_namespace ? "sysctl kernel.perf_event_paranoid=1, or " REMEDY_USER_NAMESPACE
				    : "sysctl kernel.perf_event_paranoid=1, or give CAP_PERFMON";
}

static bool nothing_counts(const struct event *event, const struct sides *sides, const struct host *host)
{
	/* On other architectures the kernel counts some of these. */
	return sides->sides == SIDES_NONE &&
	       (!strcmp(host->machine, "x86_64") || event->attr.config == PERF_COUNT_SW_DUMMY ||
		event->attr.config == PERF_COUNT_SW_BPF_OUTPUT);
}

static void settle_missed(struct event *event, const struct sides *sides, const struct host *host)
{
	if (event->privilege_given) /* --force */
		snprintf(event->never, sizeof(event->never), "it %s, and the %s side was asked for",
			 sides->why, event->attr.exclude_user ? "hypervisor's" : "user's");
	else
		snprintf(event->never, sizeof(event->never),
			 "it %s, which this user may not count (kernel.perf_event_paranoid is %d); to count "
			 "it: %s",
			 sides->why, host->perf_event_paranoid, sides_remedy(host));
}

/* What the kernel counts although it was asked to leave it out. */
static void note_ignored(struct event *event, const struct sides *sides)
{
	const struct perf_event_attr *attr = &event->attr;
	bool clock_samples = event_is_clock(event) && attr->sample_period;
	bool kernels_alone = attr->exclude_user && !attr->exclude_kernel;

	if (sides->sides == SIDES_IGNORED && !clock_samples &&
	    (attr->type == PERF_TYPE_TRACEPOINT ? kernels_alone : one_side(attr)))
		event_note(event, "it %s", sides->why);
	if (sides_of_guests_ignored(event)) /* --force */
		event_note(event, "it counts on the host, although guests were asked for");
	/* perf_swevent_hrtimer() has the only test of it outside of other architectures' drivers. */
	if (attr->exclude_idle && !clock_samples)
		event_note(event, "on x86 the kernel counts the idle task all the same");
}

static void settle_sides(struct event *event, const struct host *host)
{
	struct sides sides;

	sides_of(event, host, &sides);
	if (sides_missed(event, &sides))
		settle_missed(event, &sides, host);
	else if (sides_all_excluded(event, host))
		snprintf(event->never, sizeof(event->never),
			 "both sides that there are, u and k, are excluded");
	else if (nothing_counts(event, &sides, host))
		snprintf(event->never, sizeof(event->never), "it %s", sides.why);
	note_ignored(event, &sides);
}

void sides_settle(struct events *events, const struct host *host)
{
	for (size_t i = 0; i < events->nr; i++)
		settle_sides(&events->list[i], host);
}
