// SPDX-License-Identifier: GPL-2.0-only
#include "plan/units.h"

#include <errno.h>

static int check_asked(const struct event *event, const struct options *options, struct refusal *refusal)
{
	if (options->msr)
		return 0;
	refuse(refusal, STATUS_USAGE, "event '%s'", event->name);
	because(refusal,
		"Linux has no driver for its counter: it takes writing model-specific registers, which "
		"nothing else arbitrates");
	return instead(refusal, "add --msr; nhmtap explain shows what is written");
}

static int check_counter(const struct event *event, struct refusal *refusal)
{
	if (event->unit_counter >= 0)
		return 0;
	refuse(refusal, STATUS_USAGE, "event '%s'", event->name);
	refusal->error = ENOSPC;
	because(refusal, "%s has %zu counters for %s, and there is no taking turns with them",
		event->msr->name, event->kind->nr_counters, event->kind->name);
	according(refusal, "%s", event->msr->source);
	return instead(refusal, "count the others in another run");
}

int units_check(const struct events *events, const struct options *options, struct refusal *refusal)
{
	for (size_t i = 0; i < events->nr; i++)
		if (events->list[i].msr && (check_asked(&events->list[i], options, refusal) ||
					    check_counter(&events->list[i], refusal)))
			return -1;
	return 0;
}
