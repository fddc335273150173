// SPDX-License-Identifier: GPL-2.0-only
/*
 * plan ROOT: prints the median CPU time in ns that it takes to parse and plan a list of 100 events
 * on the host below ROOT, whose CPU has to have a table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/plan.h"

#define EVENTS 100
#define TIMES  301

/* A hundred events, with the kinds of spelling in turn. */
static const char *write_list(const struct cpu_events *cpu, char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < EVENTS && used < size; i++) {
		const char *name = cpu->events[i * cpu->nr_events / EVENTS].name;

		used += snprintf(text + used, size - used, i ? "," : "");
		if (i % 5 == 0)
			used += snprintf(text + used, size - used, "cpu/event=0xc2,umask=0x1,cmask=1/u");
		else if (i % 5 == 1)
			used += snprintf(text + used, size - used,
					 "OFFCORE_RESPONSE:ANY_DATA|ANY_RFO:ANY_DRAM|LOCAL_CACHE:k");
		else if (i % 5 == 2)
			used += snprintf(text + used, size - used, "LLC-load-misses:u");
		else if (strstr(name, "LATENCY"))
			used += snprintf(text + used, size - used, "page-faults");
		else
			used += snprintf(text + used, size - used, "%s:u", name);
	}
	return text;
}

static long long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static char text[1 << 16];
	static long long times[TIMES];
	struct options options = {.host_root = ""};
	struct refusal refusal = {0};
	struct host host;

	if (argc < 2 || host_gather(&host, argv[1]) || !host.events)
		return 2;
	options.events = write_list(host.events, text, sizeof(text));
	for (int i = 0; i < TIMES; i++) {
		struct plan plan = {0};
		long long began = cpu_ns();

		if (plan_explain(&plan, &options, &host, &refusal) || plan.events.nr != EVENTS) {
			fprintf(stderr, "%s: %s\n", refusal.asked, refusal.why);
			return 1;
		}
		times[i] = cpu_ns() - began;
		plan_release(&plan);
	}
	qsort(times, TIMES, sizeof(times[0]), by_value);
	printf("%lld\n", times[TIMES / 2]);
	host_release(&host);
	return 0;
}
