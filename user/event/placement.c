// SPDX-License-Identifier: GPL-2.0-only
#include "event/placement.h"

#include <string.h>

#include "event/encoding.h"

unsigned long long placement_choices(struct host *host, const struct event *event)
{
	const struct cpu_events *cpu = host->events;
	const struct kernel_rule *rule = NULL;
	unsigned long long general = (1ULL << cpu->general_counters) - 1;
	struct encoding encoding;

	if (!encoding_of(&event->attr, host, &encoding))
		return 0;
	if (cpu->kernel && event->attr.precise_ip) /* PEBS has rules of its own, and no fixed counter */
		rule = kernel_rule_of(cpu->kernel->precise, cpu->kernel->nr_precise, encoding.config);
	else if (cpu->kernel)
		rule = kernel_rule_of(cpu->kernel->placed, cpu->kernel->nr_placed, encoding.config);
	if (!rule)
		return general;
	return rule->counters | (rule->fixed_counter >= 0 ? 1ULL << (PLACED_FIXED + rule->fixed_counter) : 0);
}

/* Gives event i a counter, moving others that have one to another if need be: Kuhn's algorithm for
 * matching. `holder` is the event of each counter, -1 if it is free. */
static bool place(const unsigned long long *choices, int i, unsigned long long *tried, int *holder)
{
	/* From the top: a fixed counter serves few, so it goes first, as the kernel's order does. */
	for (int counter = 63; counter >= 0; counter--) {
		if (!(choices[i] >> counter & 1) || *tried >> counter & 1)
			continue;
		*tried |= 1ULL << counter;
		if (holder[counter] < 0 || place(choices, holder[counter], tried, holder)) {
			holder[counter] = i;
			return true;
		}
	}
	return false;
}

int placement_find(struct host *host, const struct event *events, size_t nr, unsigned long long taken,
		   int *counters)
{
	unsigned long long choices[PLACEMENT_MOST];
	int holder[64];

	memset(holder, -1, sizeof(holder));
	for (size_t i = 0; i < nr; i++)
		counters[i] = PLACED_NOWHERE;
	for (size_t i = 0; i < nr; i++) {
		unsigned long long tried = taken;

		if (i == PLACEMENT_MOST)
			return i;
		choices[i] = placement_choices(host, &events[i]);
		if (choices[i] && !place(choices, i, &tried, holder))
			return i;
	}
	for (int counter = 0; counter < 64; counter++)
		if (holder[counter] >= 0)
			counters[holder[counter]] = counter;
	return -1;
}
