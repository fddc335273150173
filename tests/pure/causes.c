/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads accounts of precise events, one per line ("COUNT PERIOD RUNS CONTEXTS"), and prints the
 * cause that is given for missed samples. */
#include <stdio.h>

#include "record/samples.h"

int main(void)
{
	struct samples_read read = {.precise = true};

	while (scanf("%llu %llu %llu %llu", &read.count, &read.sample_period, &read.runs, &read.contexts) ==
	       4)
		puts(missed_cause(&read));
	return 0;
}
