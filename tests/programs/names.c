// SPDX-License-Identifier: GPL-2.0-only
/*
 * names STEP…: takes steps in functions of known names, so that a test knows which names must
 * appear and how often. It prints "at PID" before the first step.
 *
 *   here=N        N page faults in here()
 *   child=N       the same in a child, which then exits
 *   late=FILE,N   loads a library, and N page faults in its late()
 *   jit=N         N page faults in code that it generates, called "jitted" in /tmp/perf-PID.map
 *   heir=N        N page faults in the code of the last jit= in a child, and N in a child of that
 *   linked=FILE,N the same at FIXED_CODE, where the map is a symbolic link to FILE
 *   clock=MS      calls clock_gettime() for so long
 *   unlink=FILE
 *   rename=A,B
 *   wait          until a line comes from its input
 *
 * Each page fault is exactly one sample at the instruction that causes it: each touches a new page.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

__attribute__((noinline)) void here(volatile char *page)
{
	*page = 1;
}

static void fault(void (*touch)(volatile char *page), long n)
{
	char *pages = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		_exit(99);
	madvise(pages, n * PAGE, MADV_NOHUGEPAGE);
	for (long i = 0; i < n; i++)
		touch(pages + i * PAGE);
	munmap(pages, n * PAGE);
}

static void in_child(long n)
{
	if (!fork()) {
		fault(here, n);
		_exit(0);
	}
	wait(NULL);
}

static void in_library(char *arguments)
{
	char *n = strchr(arguments, ',');
	void *library;
	void (*late)(volatile char *page);

	*n++ = '\0';
	library = dlopen(arguments, RTLD_NOW);
	late = library ? dlsym(library, "late") : NULL;
	if (!late)
		_exit(98);
	fault(late, atol(n));
}

static const unsigned char touch[] = {0xc6, 0x07, 0x01, 0xc3}; /* movb $1,(%rdi); ret */

static void *make_code(void *at)
{
	void *code = mmap(at, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	return memcpy(code, touch, sizeof(touch));
}

#define FIXED_CODE ((void *)0x7e0000000000)

static void in_linked_code(char *arguments)
{
	char *n = strchr(arguments, ','), name[64];

	*n++ = '\0';
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	if (symlink(arguments, name))
		_exit(95);
	fault(make_code(FIXED_CODE), atol(n));
}

static void *made;

static void in_made_code(long n)
{
	void *code = made = make_code(NULL);
	char name[64];
	FILE *map;

	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	map = fopen(name, "w");
	if (!map)
		_exit(97);
	fprintf(map, "%lx %zx jitted\n", (long)code, sizeof(touch));
	fclose(map);
	fault(code, n);
}

static void in_inherited_code(long n, int generations)
{
	if (generations && !fork()) {
		fault(made, n);
		in_inherited_code(n, generations - 1);
		_exit(0);
	}
	wait(NULL);
}

static void ask_for_time(long ms)
{
	struct timespec began, now;

	clock_gettime(CLOCK_MONOTONIC, &began);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 < ms);
}

static void step(char *text)
{
	char *value = strchr(text, '='), *second = value ? strchr(value, ',') : NULL;
	char line[16];

	value = value ? value + 1 : "";
	if (!strncmp(text, "here=", 5))
		fault(here, atol(value));
	else if (!strncmp(text, "child=", 6))
		in_child(atol(value));
	else if (!strncmp(text, "late=", 5))
		in_library(value);
	else if (!strncmp(text, "jit=", 4))
		in_made_code(atol(value));
	else if (!strncmp(text, "heir=", 5))
		in_inherited_code(atol(value), 2);
	else if (!strncmp(text, "linked=", 7) && second)
		in_linked_code(value);
	else if (!strncmp(text, "clock=", 6))
		ask_for_time(atol(value));
	else if (!strncmp(text, "unlink=", 7))
		unlink(value);
	else if (!strncmp(text, "rename=", 7) && second && (*second = '\0', !rename(value, second + 1)))
		;
	else if (!strcmp(text, "wait"))
		(void)!fgets(line, sizeof(line), stdin);
	else
		_exit(96);
}

int main(int argc, char **argv)
{
	printf("at %d\n", getpid());
	fflush(stdout);
	for (int i = 1; i < argc; i++)
		step(argv[i]);
	return 0;
}
