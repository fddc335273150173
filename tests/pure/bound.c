/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads trials, each ended by an empty line. Each line of a trial is a reading of one or two
 * events: "VALUE ENABLED RUNNING [VALUE ENABLED RUNNING]". Prints for each trial the bound of the
 * scaled count, or of the first count divided by the second, by both, or by what it has more than the
 * second: low, high, number of readings, and the longest time that an event had no counter.
 *
 * usage: bound count|ratio|share|excess [TURN_NS PACE]   PACE: the highest pace of all events, per ns
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metric/bound.h"

static int ratio(const void *what, const struct count *counts, double *value)
{
	const char *of = what;
	double first, second, by;

	if (!counts[0].running_ns || !counts[1].running_ns)
		return -1;
	first = count_scaled(&counts[0]);
	second = count_scaled(&counts[1]);
	by = *of == 'r' ? second : *of == 's' ? first + second : first - second;
	*value = first / by;
	return by ? 0 : -1;
}

int main(int argc, char **argv)
{
	size_t nr = argc > 1 && strcmp(argv[1], "count") ? 2 : 1, both[] = {0, 1};
	struct count total[2] = {0};
	double paces[2] = {argc > 3 ? atof(argv[3]) : 0};
	struct turns turns;
	char line[400];

	turns_open(&turns, nr, argc > 3 ? 2 * atoll(argv[2]) : 1, argc > 3 ? atoll(argv[2]) : 1000000);
	paces[1] = paces[0];
	turns.paces = argc > 3 ? paces : NULL;
	while (fgets(line, sizeof(line), stdin)) {
		struct count now[2] = {0};
		struct bound bound = {0};

		if (*line != '\n') {
			sscanf(line, "%llu %llu %llu %llu %llu %llu", &now[0].value, &now[0].enabled_ns,
			       &now[0].running_ns, &now[1].value, &now[1].enabled_ns, &now[1].running_ns);
			turns_add(&turns, now, argc > 3 ? now[0].enabled_ns : 1);
			count_add(&total[0], &now[0]);
			count_add(&total[1], &now[1]);
			continue;
		}
		if (nr == 1)
			bound_of_count(&turns, total, 0, &bound);
		else if (bound_of(&turns, total, both, 2, ratio, argv[1], &bound))
			bound = (struct bound){.low = NAN, .high = NAN};
		printf("%.17g %.17g %zu %.17g\n", bound.low, bound.high, bound.turns, bound.absent_ns);
		turns_clear(&turns);
		memset(total, 0, sizeof(total));
	}
	turns_close(&turns);
	return 0;
}
