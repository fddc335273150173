// SPDX-License-Identifier: GPL-2.0-only
/* Reads steps: "+ KEY VALUE" puts, "- KEY VALUE" removes, "? KEY" prints a key's values, "%" prints all and
 * removes the even ones meanwhile. Values are numbers from 1. */
#include <inttypes.h>
#include <stdio.h>

#include "base/map.h"

static void *as_value(unsigned long number)
{
	return (void *)number;
}

int main(void)
{
	__u64 keys[1 << 16] = {0};
	struct map map = {0};
	uint64_t key;
	unsigned long number;
	char step;

	while (scanf(" %c", &step) == 1) {
		size_t at = 0;

		if (step == '+' && scanf("%" SCNu64 " %lu", &key, &number) == 2) {
			keys[number] = key;
			map_put(&map, key, as_value(number));
		} else if (step == '-' && scanf("%" SCNu64 " %lu", &key, &number) == 2) {
			map_remove(&map, key, as_value(number));
		} else if (step == '?' && scanf("%" SCNu64, &key) == 1) {
			while ((number = (unsigned long)map_find_next(&map, key, &at)))
				printf("%lu ", number);
			printf("\n");
		} else if (step == '%') {
			while ((number = (unsigned long)map_next(&map, &at))) {
				printf("%lu ", number);
				if (number % 2)
					continue;
				map_remove(&map, keys[number], as_value(number));
				at--;
			}
			printf("\n");
		}
	}
	map_release(&map);
	return 0;
}
