/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gathers a profile from lines, and prints it: "at SINCE UNTIL" chooses a time, "sample OWNER WEIGHT
 * FUNCTION", "count NAME VALUE" and "loads SOURCE SAMPLES PERIOD LATENCIES LONGEST" add to it.
 */
#include <stdio.h>

#include "output/firefox_profile.h"

static void take(struct fox *fox, const char *line)
{
	unsigned long long since, until;
	double numbers[4];
	char name[200], function[200];

	if (sscanf(line, "at %llu %llu", &since, &until) == 2) {
		fox_choose_time(fox, since, until);
	} else if (sscanf(line, "sample %199s %lf %199s", name, numbers, function) == 3) {
		fox_begin_sample(fox, &(struct fox_owner){.event = "e", .label = "e", .name = name});
		fox_push(fox, &(struct step){.name = function});
		fox_end_sample(fox, *numbers);
	} else if (sscanf(line, "count %199s %lf", name, numbers) == 2) {
		fox_count(fox, name, name, "counted", *numbers);
	} else if (sscanf(line, "loads %199s %lf %lf %lf %lf", name, numbers, numbers + 1, numbers + 2,
			  numbers + 3) == 5) {
		fox_loads(fox, name, numbers[0], numbers[1], numbers[2], numbers[3]);
	}
}

int main(void)
{
	struct fox *fox = fox_new();
	char line[1000];
	json_t *value;

	while (fgets(line, sizeof(line), stdin))
		take(fox, line);
	value = fox_value(fox, "title", 1);
	json_dumpf(value, stdout, JSON_COMPACT);
	json_decref(value);
	fox_release(fox);
	return 0;
}
