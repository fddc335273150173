// SPDX-License-Identifier: GPL-2.0-only
#include "plan/sides.h"

#include <stdio.h>
#include <string.h>

#include "host/kernel.h"
#include "host/privileges.h"
#include "plan/denial.h"
#include "tables/names.h"

static const struct generic_event *known_of(const struct event *event)
{
	return generic_event_of(event->attr.type, event->attr.config);
}

static bool has_sides(const struct event *event, enum event_sides sides)
{
	const struct generic_event *known = known_of(event);

	return known && known->sides == sides;
}

bool sides_missed(const struct event *event)
{
	return event->attr.exclude_kernel && has_sides(event, SIDES_KERNEL);
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

static bool nothing_counts(const struct event *event, const struct host *host)
{
	/* On other architectures the kernel counts some of these. */
	return has_sides(event, SIDES_NONE) &&
	       (!strcmp(host->machine, "x86_64") || event->attr.config == PERF_COUNT_SW_DUMMY ||
		event->attr.config == PERF_COUNT_SW_BPF_OUTPUT);
}

static void settle_missed(struct event *event, const struct host *host)
{
	const char *why = known_of(event)->sides_why;

	if (event->privilege_given) /* --force */
		snprintf(event->never, sizeof(event->never), "it %s, and the user's side was asked for", why);
	else
		snprintf(event->never, sizeof(event->never),
			 "it %s, which this user may not count (kernel.perf_event_paranoid is %d); to count "
			 "it: %s",
			 why, host->perf_event_paranoid, sides_remedy(host));
}

static bool one_side(const struct perf_event_attr *attr)
{
	return attr->exclude_user || attr->exclude_kernel;
}

static void settle(struct event *event, const struct host *host)
{
	if (sides_missed(event))
		settle_missed(event, host);
	else if (sides_all_excluded(event, host))
		snprintf(event->never, sizeof(event->never),
			 "both sides that there are, u and k, are excluded");
	else if (nothing_counts(event, host))
		snprintf(event->never, sizeof(event->never), "it %s", known_of(event)->sides_why);
	else if (has_sides(event, SIDES_IGNORED) && one_side(&event->attr) && !event->attr.sample_period)
		event_note(event, "it %s", known_of(event)->sides_why);
	else if (event->attr.type == PERF_TYPE_TRACEPOINT && event->attr.exclude_kernel)
		event_note(event, "on the user's side only the tracepoints of system calls and uprobes "
				  "count; others are passed in the kernel");
}

void sides_settle(struct events *events, const struct host *host)
{
	for (size_t i = 0; i < events->nr; i++)
		settle(&events->list[i], host);
}
