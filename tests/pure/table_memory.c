// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of files, in memory that no program reads. Reads lines: "get PATH" makes the table of
 * a file and prints its number, "put NUMBER" says that a process no longer maps the file, "use
 * NUMBER" that a program has used the table, "later SECONDS" advances the clock, and "note" notes
 * the uses. All but "get" print the bytes in use.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "aggregation/unwind_memory.h"
#include "unwind/cache.h"

static long passed;

/* Replaces libc's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int status = (int)syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += passed;
	return status;
}

/* --- memory in place of the one that programs read -------------------------------------------- */

static struct unwind_files files;
static void *places[1 << 16];
static size_t nr_places = 1, taken; /* words */

__u32 unwind_memory_take(struct unwind_memory *memory, size_t words)
{
	if (nr_places == sizeof(places) / sizeof(places[0]))
		abort();
	places[nr_places] = calloc(words, sizeof(__u32));
	__atomic_add_fetch(&taken, words, __ATOMIC_SEQ_CST);
	return nr_places++;
}

void unwind_memory_give(struct unwind_memory *memory, __u32 position, size_t words)
{
	free(places[position]);
	places[position] = NULL;
	__atomic_sub_fetch(&taken, words, __ATOMIC_SEQ_CST);
}

void *unwind_memory_at(const struct unwind_memory *memory, __u32 position)
{
	return places[position];
}

struct unwind_file *unwind_memory_file(const struct unwind_memory *memory, __u32 number)
{
	return &files.list[number];
}

void unwind_memory_wait(const struct unwind_memory *memory)
{
}

void unwind_memory_trim(struct unwind_memory *memory)
{
}

void unwind_memory_look_up_anew(const struct unwind_memory *memory)
{
}

void unwind_memory_name(const struct unwind_memory *memory, const struct unwind_inode *inode, __u32 number,
			__s64 bias)
{
}

void unwind_memory_forget_name(const struct unwind_memory *memory, const struct unwind_inode *inode)
{
}

/* --- the tables ---------------------------------------------------------------------------------------- */

static __u32 get(struct unwind_tables *tables, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	__u32 number = fstat(fd, &stat) ? 0 : unwind_tables_get(tables, &stat, fd);

	close(fd);
	return number;
}

int main(void)
{
	struct unwind_tables *tables = unwind_tables_open(NULL, 64 << 20);
	char line[8192], path[4096];
	__u32 number;
	long seconds;

	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "put %u", &number) == 1)
			unwind_tables_put(tables, number);
		if (sscanf(line, "use %u", &number) == 1)
			files.list[number].used = 1;
		if (sscanf(line, "later %ld", &seconds) == 1)
			passed += seconds;
		if (line[0] == 'n')
			unwind_tables_note_uses(tables);
		number = sscanf(line, "get %4095s", path) == 1 ? get(tables, path) : 0;
		unwind_tables_wait(tables, 0);
		printf("%zu\n", number ? (size_t)number : taken * sizeof(__u32));
		fflush(stdout);
	}
	unwind_tables_close(tables);
	for (size_t i = 1; i < nr_places; i++)
		free(places[i]);
	return 0;
}
