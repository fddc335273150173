// SPDX-License-Identifier: GPL-2.0-only
/*
 * naming TIMES: names the places on stdin (a line "PATH OFFSET" each, with the offset in hex) TIMES
 * times, and prints symbol and offset, as perf script does. A file is asked for by its build-id as soon as
 * that is known: nhmtap has it from the kernel's notes. By its path alone, each call would look at the file
 * again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "naming/naming.h"

#define MOST	   1000000
#define FILES_MOST 100

static struct file {
	const char *path;
	char *build_id; /* NULL: not known */
} files[FILES_MOST];
static size_t nr_files;

static struct file *file_of(const char *path)
{
	for (size_t i = 0; i < nr_files; i++)
		if (!strcmp(files[i].path, path))
			return &files[i];
	if (nr_files == FILES_MOST)
		exit(1);
	files[nr_files].path = path;
	return &files[nr_files++];
}

int main(int argc, char **argv)
{
	static struct place {
		struct file *file;
		__u64 offset;
	} places[MOST];
	struct naming *naming = naming_open(&(struct naming_settings){0});
	char line[4096];
	size_t nr = 0;

	while (nr < MOST && fgets(line, sizeof(line), stdin)) {
		char *end = strchr(line, ' ');

		*end = '\0';
		places[nr++] = (struct place){file_of(strdup(line)), strtoull(end + 1, NULL, 16)};
	}
	for (int times = atoi(argv[argc - 1]); times--;)
		for (size_t i = 0; i < nr; i++) {
			struct file *file = places[i].file;
			const struct name *name =
				naming_file(naming, file->path, file->build_id, places[i].offset);

			if (!file->build_id && name->build_id)
				file->build_id = strdup(name->build_id);
			if (name->nr)
				printf("%s+%#llx\n", name->frames[name->nr - 1].symbol,
				       (unsigned long long)name->frames[name->nr - 1].offset);
			else
				puts("[unknown]");
		}
	naming_close(naming);
	return 0;
}
