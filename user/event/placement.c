// SPDX-License-Identifier: GPL-2.0-only
#include "event/placement.h"

#include <string.h>

#include "event/encoding.h"

static const struct kernel_rule *rule_of(const struct known_kernel *kernel, const struct event *event,
					 __u64 config)
{
	if (!kernel)
		return NULL;
	/* PEBS has its own rules, and can't use a fixed counter. */
	return event->attr.precise_ip ? kernel_rule_of(kernel->precise, kernel->nr_precise, config)
				      : kernel_rule_of(kernel->placed, kernel->nr_placed, config);
}

unsigned long long placement_choices(struct host *host, const struct event *event)
{
	unsigned long long general = (1ULL << general_counters_of(host)) - 1;
	const struct kernel_rule *rule;
	struct encoding encoding;

	if (!encoding_of(&event->attr, host, &encoding))
		return 0;
	rule = rule_of(host->events->kernel, event, encoding.config);
	if (!rule) /* no event code: the driver's own number, which no general counter counts */
		return encoding.config & CONFIG_EVENT ? general : 0;
	return (rule->counters & general) |
	       (has_fixed_counter(host->events, rule) ? 1ULL << (PLACED_FIXED + rule->fixed_counter) : 0);
}

/* Assigns a counter to event i, moving other events to other counters if necessary: Kuhn's matching
 * algorithm. `holder` is the event of each counter, -1 if it is free. */
static bool place_event(const unsigned long long *choices, int i, unsigned long long *tried, int *holder)
{
	/* Descending: fixed counters, which serve few events, are tried first, as in the kernel's order. */
	for (int counter = 63; counter >= 0; counter--) {
		if (!(choices[i] >> counter & 1) || *tried >> counter & 1)
			continue;
		*tried |= 1ULL << counter;
		if (holder[counter] < 0 || place_event(choices, holder[counter], tried, holder)) {
			holder[counter] = i;
			return true;
		}
	}
	return false;
}

/* The number of general counters that the events may use. If one of them is exclusive and the core has
 * another thread, it is half of the thread's counters (x86_schedule_events(), events/core.c: gpmax). */
static unsigned int general_most(struct host *host, const struct event *events, size_t nr)
{
	unsigned int general = general_counters_of(host);
	struct encoding encoding;

	for (size_t i = 0; i < nr && general != host->events->general_counters; i++) {
		const struct kernel_rule *rule = NULL;

		if (encoding_of(&events[i].attr, host, &encoding))
			rule = rule_of(host->events->kernel, &events[i], encoding.config);
		if (rule && rule->exclusive)
			return general / 2;
	}
	return general;
}

int placement_find(struct host *host, const struct event *events, size_t nr, unsigned long long taken,
		   int *counters)
{
	unsigned long long choices[PLACEMENT_MOST];
	int holder[64];
	unsigned int used = 0;

	memset(holder, -1, sizeof(holder));
	for (size_t i = 0; i < nr; i++)
		counters[i] = PLACED_NOWHERE;
	for (size_t i = 0; i < nr; i++) {
		unsigned long long tried = taken;

		if (i == PLACEMENT_MOST)
			return i;
		choices[i] = placement_choices(host, &events[i]);
		if (choices[i] && !place_event(choices, i, &tried, holder))
			return i;
	}
	for (int counter = 0; counter < 64; counter++)
		if (holder[counter] >= 0) {
			counters[holder[counter]] = counter;
			used += counter < PLACED_FIXED;
		}
	return used > general_most(host, events, nr) ? (int)nr - 1 : -1;
}
