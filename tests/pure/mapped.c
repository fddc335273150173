// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes notes of mappings, and answers which file an address belongs to. Each line is a step, with numbers in
 * decimal:
 *
 *     map PID BEGIN END OFFSET PATH
 *     fork PID PARENT
 *     exec PID
 *     find PID ADDRESS   prints the path and the offset, or "-"; codes must say the same
 *     many PID NR        maps NR pages: two thirds from below, the others from above
 *     forks PID NR       forks NR children, one after the other, each of which ends
 *     execs PID NR       the same, and each executes a program whose file no other has mapped
 *     files PID NR       maps NR files, one after the other, at one address
 *     bytes              prints the memory that is used
 *
 * The times of the steps are 1, 2, … ns, so a mapping that still exists has existed for much longer than one
 * that has ended.
 */
#include <stdio.h>
#include <string.h>

#include "naming/codes.h"
#include "naming/mappings.h"

#define PAGE 4096ULL
#define TOP  (1ULL << 46)

/* No process has these pids, so nothing is looked up in /proc. */
#define PID(number) (0x7f000000 + (number))

static void take(struct mappings *mappings, enum sideband_kind kind, int pid, int parent, __u64 begin,
		 __u64 end, __u64 offset, const char *path, __u64 time)
{
	mappings_take(mappings, &(struct sideband_note){.kind = kind,
							.pid = PID(pid),
							.parent = PID(parent),
							.time = time,
							.begin = begin,
							.size = end - begin,
							.offset = offset,
							.path = path,
							.comm = "",
							.device = 1,
							.inode = path[strlen(path) - 1]});
}

static void map_many(struct mappings *mappings, int pid, __u64 nr, __u64 time)
{
	for (__u64 i = 0; i < nr; i++) {
		__u64 begin = i % 3 ? 2 * i * PAGE : TOP - 2 * i * PAGE;

		take(mappings, SIDEBAND_MAPPED, pid, 0, begin, begin + PAGE, i * PAGE, "/nonexistent/many",
		     time);
	}
}

static const char *long_path(char path[300], __u64 i)
{
	snprintf(path, 300, "/nonexistent/%0200llu", (unsigned long long)i);
	return path;
}

static void fork_many(struct mappings *mappings, int parent, __u64 nr, bool executes, __u64 time)
{
	char path[300];

	for (__u64 i = 0; i < nr; i++) {
		int pid = parent + 1 + i;

		take(mappings, SIDEBAND_FORKED, pid, parent, 0, 0, 0, " ", time);
		if (executes) {
			take(mappings, SIDEBAND_EXECUTED, pid, 0, 0, 0, 0, " ", time);
			take(mappings, SIDEBAND_MAPPED, pid, 0, PAGE, 2 * PAGE, 0, long_path(path, i), time);
		}
		take(mappings, SIDEBAND_EXITED, pid, 0, 0, 0, 0, " ", time);
	}
}

static void map_files(struct mappings *mappings, int pid, __u64 nr, __u64 time)
{
	char path[300];

	for (__u64 i = 0; i < nr; i++)
		take(mappings, SIDEBAND_MAPPED, pid, 0, PAGE, 2 * PAGE, 0, long_path(path, i), time);
}

/* Whether the code of an address is described by this spot. */
static bool is_code_of(struct codes *codes, int pid, __u64 address, const struct spot *spot)
{
	const struct code *code =
		codes_at(codes, codes_number(codes, CODE_PLACE, PID(pid), NULL, address, 1));

	if (!spot->file)
		return !code->module;
	return code->module && !strcmp(code->module, spot->file->path) && code->offset == spot->offset;
}

int main(void)
{
	struct mappings *mappings = mappings_new();
	struct ksymbols ksymbols = {0};
	struct code_account account = {0};
	struct codes *codes = codes_new(mappings, NULL, &ksymbols, NULL, &account, 0, 0, 0);
	unsigned long long first, second, offset;
	char line[300], path[100], what[10];
	int pid;

	for (__u64 time = 1; fgets(line, sizeof(line), stdin); time++) {
		if (sscanf(line, "map %d %llu %llu %llu %99s", &pid, &first, &second, &offset, path) == 5) {
			take(mappings, SIDEBAND_MAPPED, pid, 0, first, second, offset, path, time);
		} else if (!strcmp(line, "bytes\n")) {
			printf("%zu\n", mappings_bytes(mappings));
		} else if (sscanf(line, "%9s %d %llu", what, &pid, &first) < 2) {
			return 1;
		} else if (!strcmp(what, "fork")) {
			take(mappings, SIDEBAND_FORKED, pid, first, 0, 0, 0, " ", time);
		} else if (!strcmp(what, "exec")) {
			take(mappings, SIDEBAND_EXECUTED, pid, 0, 0, 0, 0, " ", time);
		} else if (!strcmp(what, "many")) {
			map_many(mappings, pid, first, time);
		} else if (!strcmp(what, "forks") || !strcmp(what, "execs")) {
			fork_many(mappings, pid, first, what[0] == 'e', time);
		} else if (!strcmp(what, "files")) {
			map_files(mappings, pid, first, time);
		} else {
			struct spot spot = mappings_find(mappings, PID(pid), NULL, first, 0);

			if (!is_code_of(codes, pid, first, &spot))
				return 1;
			if (spot.file)
				printf("%s %llu\n", spot.file->path, (unsigned long long)spot.offset);
			else
				puts("-");
		}
	}
	codes_release(codes);
	mappings_release(mappings);
	return 0;
}
