// SPDX-License-Identifier: GPL-2.0-only
#include "base/array.h"
#include "metric/pace.h"

#include "event/encoding.h"

/* What is taken if the time stamp counter gives no plausible clock, in cycles per ns. */
#define CLOCK_MOST  5
#define STAMP_LEAST 0.02

/* What no counter of a core exceeds: the super queue's 16 entries, all outstanding in a cycle. Those of the
 * other units are longer; the tracker of a Nehalem-EX's home agent has 256. */
#define CORE_MOST 16
#define UNIT_MOST 256

#define FAMILY_6 6

/* Events of the cores of family 6 that are limited by what a core can do in a cycle. The first row that
 * matches counts. umask 0: any. (Intel 64 and IA-32 Architectures Optimization Reference Manual, on the
 * pipelines of Core, Nehalem and Sandy Bridge.) */
static const struct {
	__u64 code, umask;
	double most;
} paces[] = {
	{0x0b, 0x0100, 1},		 /* loads: one port; two on Sandy Bridge, which counts them as 0xd0 */
	{0x0b, 0x0200, 1},		 /* stores: one port */
	{0x0b, 0, 2},	   {0xd0, 0, 3}, /* Sandy Bridge: two loads and a store */
	{0xd1, 0, 2},			 /* its retired loads by where they found their data */
	{0xd2, 0, 2},	   {0xd3, 0, 2}, {0xd4, 0, 2}, {0xcb, 0, 2}, /* the same on Core and Nehalem, which
									have one port */
	{0xc0, 0, 5},				       /* instructions: four, of which one is a pair */
	{0xc4, 0, 2},				       /* branches: one port, and a not-taken one with it */
	{0xc5, 0, 1},				       /* each mispredicted one restarts the pipeline */
	{0x88, 0, 2},	   {0x89, 0, 1}, {0x3c, 0, 1}, /* cycles */
	{0x00, 0x0200, 1}, /* the driver's number of the fixed counter of cycles */
	{0x00, 0x0300, 1}, /* and that of reference cycles */
	{0xa2, 0, 1},	   /* stalled cycles */
	{0x08, 0, 1},	   /* a page walk, or a cycle of one */
	{0x49, 0, 1},	   {0x85, 0, 1}, {0x24, 0, 1}, /* the second level cache has one access a cycle */
	{0x26, 0, 1},	   {0x27, 0, 1}, {0x28, 0, 1}, {0xf0, 0, 1}, {0xf1, 0, 1},
	{0xf2, 0, 1},	   {0x2e, 0, 1}, /* requests to the last level leave the core one by one */
	{0xb0, 0, 1},	   {0xb7, 0, 1}, {0xbb, 0, 1}, {0x40, 0, 2}, /* the first level cache: a load and a
									store; two loads on Sandy Bridge */
	{0x41, 0, 2},	   {0x42, 0, 2}, {0x43, 0, 3}, {0x51, 0, 1}, {0x80, 0, 1}, /* fetches of code */
};

static double most_of_code(__u64 config)
{
	/* With a cmask, it is cycles that are counted. */
	if (config & CONFIG_CMASK)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(paces); i++)
		if (paces[i].code == (config & CONFIG_EVENT) &&
		    (!paces[i].umask || paces[i].umask == (config & CONFIG_UMASK)))
			return paces[i].most;
	return CORE_MOST;
}

double event_most_per_cycle(const struct event *event, struct host *host)
{
	struct encoding encoding;

	if (event->unit[0] || !host->events || !encoding_of(&event->attr, host, &encoding))
		return UNIT_MOST;
	return host->cpu.family == FAMILY_6 ? most_of_code(encoding.config) : CORE_MOST;
}

double cycles_per_ns(__u64 stamp_before, __u64 stamp_after, __u64 ns)
{
	double rate = ns ? (double)(stamp_after - stamp_before) / ns : 0;

	return rate >= STAMP_LEAST && rate <= CLOCK_MOST ? rate : CLOCK_MOST;
}

__u64 time_stamp(void)
{
	return __builtin_ia32_rdtsc();
}
