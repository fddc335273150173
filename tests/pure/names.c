// SPDX-License-Identifier: GPL-2.0-only
/*
 * names [-l] [-r] [-s ROOT] [-d DEBUG_DIR] [-k KALLSYMS] [-m MODULES] [-M MODULE_FOLDER] [-b BYTES]: reads
 * lines "file PATH BUILD-ID|- OFFSET", "kernel ADDRESS" and "jit MAP ADDRESS [SINCE [ENDED]]" (addresses in
 * hex, no blanks in paths), and prints the name of each place as a line of JSON. "later SECONDS" advances the
 * clock, and "forget SECONDS" forgets what was unused for so long; they and "memory" print the bytes that are
 * kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <jansson.h>

#include "base/clock.h"
#include "naming/naming.h"

static double passed;

/* Replaces libc's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int status = (int)syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += (time_t)passed;
	now->tv_nsec += (long)((passed - (double)(time_t)passed) * 1e9);
	now->tv_sec += now->tv_nsec / 1000000000;
	now->tv_nsec %= 1000000000;
	return status;
}

static void set_text(json_t *value, const char *key, const char *text)
{
	if (text)
		json_object_set_new(value, key, json_string(text));
}

static json_t *name_value(const struct name *name)
{
	json_t *value = json_object(), *frames = json_array();

	set_text(value, "build_id", name->build_id);
	set_text(value, "module", name->module);
	set_text(value, "why", name->why);
	set_text(value, "lines_why", name->lines_why);
	if (name->refused)
		json_object_set_new(value, "refused", json_true());
	if (name->failed)
		json_object_set_new(value, "failed", json_true());
	if (name->no_room)
		json_object_set_new(value, "no_room", json_true());
	if (name->later)
		json_object_set_new(value, "later", json_true());
	if (name->nameless)
		json_object_set_new(value, "function_offset", json_integer(name->function_offset));
	for (size_t i = 0; i < name->nr; i++) {
		json_t *frame = json_pack("{s:I, s:i}", "offset", (json_int_t)name->frames[i].offset, "line",
					  name->frames[i].line);

		set_text(frame, "symbol", name->frames[i].symbol);
		set_text(frame, "file", name->frames[i].file);
		json_array_append_new(frames, frame);
	}
	json_object_set_new(value, "frames", frames);
	return value;
}

static const struct name *ask(struct naming *naming, const char *line)
{
	char path[4096], build_id[256];
	unsigned long long at;
	double later;
	long seconds, since = 0;
	int ended = 0;

	if (sscanf(line, "later %lf", &later) == 1)
		passed += later;
	if (sscanf(line, "forget %ld", &seconds) == 1)
		naming_forget(naming, clock_ns(CLOCK_MONOTONIC) - seconds * 1000000000ULL);
	if (sscanf(line, "file %4095s %255s %llx", path, build_id, &at) == 3)
		return naming_file(naming, path, strcmp(build_id, "-") ? build_id : NULL, at);
	if (sscanf(line, "kernel %llx", &at) == 1)
		return naming_kernel(naming, at);
	if (sscanf(line, "jit %4095s %llx %ld %d", path, &at, &since, &ended) >= 2)
		return naming_jit(naming, path, &(struct map_writer){getuid(), since, ended}, at);
	return NULL;
}

int main(int argc, char **argv)
{
	struct naming_settings settings = {0};
	struct naming *naming;
	char line[8192];

	for (int option; (option = getopt(argc, argv, "ls:d:k:m:M:b:r")) != -1;)
		switch (option) {
		case 'l':
			settings.lines = true;
			break;
		case 's':
			settings.root = optarg;
			break;
		case 'd':
			settings.debug_dir = optarg;
			break;
		case 'k':
			settings.kallsyms = optarg;
			break;
		case 'm':
			settings.modules = optarg;
			break;
		case 'M':
			settings.module_folder = optarg;
			break;
		case 'b':
			settings.memory = strtoull(optarg, NULL, 10);
			break;
		case 'r':
			settings.sparing = true;
			break;
		default:
			return 1;
		}
	naming = naming_open(&settings);
	while (fgets(line, sizeof(line), stdin)) {
		const struct name *name = ask(naming, line);
		json_t *value = name ? name_value(name) : json_integer(naming_memory(naming));

		json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
		json_decref(value);
		puts("");
		fflush(stdout);
	}
	naming_close(naming);
	return 0;
}
