// SPDX-License-Identifier: GPL-2.0-only
/*
 * naming TIMES: names the places on stdin (a line "PATH OFFSET" each, with the offset in hex) TIMES
 * times, and prints symbol and offset, as perf script does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "naming/naming.h"

#define MOST 1000000

int main(int argc, char **argv)
{
	static struct place {
		char *path;
		__u64 offset;
	} places[MOST];
	struct naming *naming = naming_open(&(struct naming_settings){0});
	char line[4096];
	size_t nr = 0;

	while (nr < MOST && fgets(line, sizeof(line), stdin)) {
		char *end = strchr(line, ' ');

		*end = '\0';
		places[nr++] = (struct place){strdup(line), strtoull(end + 1, NULL, 16)};
	}
	for (int times = atoi(argv[argc - 1]); times--;)
		for (size_t i = 0; i < nr; i++) {
			const struct name *name = naming_file(naming, places[i].path, NULL, places[i].offset);

			if (name->nr)
				printf("%s+%#llx\n", name->frames[name->nr - 1].symbol,
				       (unsigned long long)name->frames[name->nr - 1].offset);
			else
				puts("[unknown]");
		}
	naming_close(naming);
	return 0;
}
