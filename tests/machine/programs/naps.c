// SPDX-License-Identifier: GPL-2.0-only
/* naps NUMBER: loads from memory so many times, where no cache has it, and naps after each load. */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define LINES (1 << 19) /* four times the last-level cache */
#define STEP  4099	/* pages apart, so that nothing is fetched ahead */

int main(int argc, char **argv)
{
	unsigned long number = argc > 1 ? strtoul(argv[1], NULL, 0) : 1, at = 0;
	volatile char *memory = mmap(NULL, LINES * 64ul, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	for (; number; number--) {
		at = (at + STEP * 64) % LINES;
		(void)memory[at * 64];
		nanosleep(&(struct timespec){0, 1000}, NULL);
	}
	return 0;
}
