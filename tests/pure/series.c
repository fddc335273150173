// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records as series. The first line of stdin is the largest number of series. Each further line is
 * a record, after which all series are printed as a line of JSON ({name and labels: [count, begun]}), or
 * a number of seconds by which the clock advances.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "output/meters.h"
#include "record/overhead.h"

static long passed;

/* Replaces libc's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int status = (int)syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += passed;
	return status;
}

__u64 own_cpu_ns(void)
{
	return 0;
}

static void print(const struct meters *meters)
{
	json_t *all = json_object();

	for (const struct meter *family = meters->families; family; family = family->next)
		for (size_t i = 0; i < family->nr; i++) {
			char *labels = json_dumps(family->series[i].labels, JSON_COMPACT), name[512];

			snprintf(name, sizeof(name), "%s%s", family->name, labels);
			json_object_set_new(all, name,
					    json_pack("[I, I]", (json_int_t)family->series[i].count,
						      (json_int_t)family->series[i].begun));
			free(labels);
		}
	json_dumpf(all, stdout, JSON_COMPACT);
	puts("");
	json_decref(all);
}

int main(void)
{
	struct meters *meters = NULL;
	char line[65536];

	while (fgets(line, sizeof(line), stdin)) {
		json_t *record = json_loads(line, 0, NULL);

		if (!meters) {
			meters = meters_new(atol(line));
		} else if (!record) {
			passed += atol(line);
		} else {
			meters_take(meters, "profile", NULL, record);
			print(meters);
		}
		json_decref(record);
	}
	meters_release(meters);
	return 0;
}
