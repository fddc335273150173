// SPDX-License-Identifier: GPL-2.0-only
/*
 * Adapts how many samples are kept. Reads lines "MS BEHIND LEVEL", one a reading: when it is, whether a ring
 * is half full, and how full the queue is. Prints n after each.
 */
#include <stdio.h>

#include "activity/thinning.h"

int main(void)
{
	struct thinning thinning = {.on = true};
	unsigned long long ms;
	unsigned int behind, level;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (scanf("%llu %u %u", &ms, &behind, &level) == 3) {
		thinning_adapt(&thinning, behind, level, ms * 1000000);
		printf("%u\n", thinning.every);
	}
	return 0;
}
