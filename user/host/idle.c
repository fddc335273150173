// SPDX-License-Identifier: GPL-2.0-only
#include "host/idle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

void idle_read(struct idle *idle)
{
	unsigned long long idles, waits;
	FILE *file = fopen("/proc/stat", "re");
	char line[512];
	int cpu;

	idle_release(idle);
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "cpu%d %*u %*u %*u %llu %llu", &cpu, &idles, &waits) != 3 || cpu < 0 ||
		    cpu >= CPUS_MAX)
			continue;
		while (idle->nr <= (size_t)cpu)
			*xappend(idle->seconds, idle->nr) = 0;
		idle->seconds[cpu] = (double)(idles + waits) / sysconf(_SC_CLK_TCK);
	}
	if (file)
		fclose(file);
}

void idle_release(struct idle *idle)
{
	free(idle->seconds);
	*idle = (struct idle){0};
}

double idle_beyond(const struct idle *before, const struct cpus *cpus)
{
	struct idle now = {0};
	double sum = 0;

	idle_read(&now);
	for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, cpu + 1))
		if ((size_t)cpu < now.nr && (size_t)cpu < before->nr)
			sum += fmax(0, now.seconds[cpu] - before->seconds[cpu]);
	idle_release(&now);
	return sum;
}
