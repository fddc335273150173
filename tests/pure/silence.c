/* SPDX-License-Identifier: GPL-2.0-only */
/* Prints why an event of a fixed account has no samples: `silence CAUSE TABLE_FULL STACK_FAILED MISSED
 * THROTTLED FILTERED HARDWARE CPUS`. It occurred 5000 times, and a sample comes every 1000 times. */
#include <stdio.h>
#include <stdlib.h>

#include "activity/silence.h"
#include "record/samples.h"
#include "plan/rules.h"

/* Of event/ and plan/: the event has no threshold and is no clock. */
size_t rules_register(const struct event *event, const char *name, struct host *host, __u64 *value)
{
	return 0;
}

bool event_is_clock(const struct event *event)
{
	return false;
}

__u64 event_clock_period(const struct event *event)
{
	return 0;
}

__u64 event_distance(const struct event *event)
{
	return 1000;
}

static bool hardware;

bool event_stops_throttled(const struct event *event)
{
	return hardware;
}

int main(int argc, char **argv)
{
	static struct activity activity;
	static struct event event;
	struct count count = {.value = 5000, .enabled_ns = 1, .running_ns = 1};
	struct samples samples = {.expected = 5,
				  .table_full = atoi(argv[2]),
				  .stack_failed = atoi(argv[3]),
				  .missed = atoi(argv[4]),
				  .throttled = atoi(argv[5]),
				  .filtered = atoi(argv[6])};
	struct silence silence = {&activity, &event, &count, &samples, argv[1]};
	char text[SILENCE_SIZE];

	hardware = atoi(argv[7]);
	event.least = 32;
	activity.plan.target.cpus_given = atoi(argv[8]);
	puts(silence_is(&silence) ? silence_why(&silence, text) : "");
	samples.aggregated = 1;
	return silence_is(&silence);
}
