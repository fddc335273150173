// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executes instructions at which a breakpoint is set in the processor: N times a function's first, and a repeated
 * store, which is interrupted after each of its N times. Prints how often each breakpoint was met.
 */
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { N = 100 };

static char to[N];

__attribute__((noipa)) static void called(void)
{
	__asm__ volatile("");
}

extern const char repeated[];

static void store_repeatedly(void)
{
	char *at = to;
	uint64_t times = N;

	__asm__ volatile("repeated: rep stosb" : "+D"(at), "+c"(times) : "a"(1) : "memory");
}

static void call(void)
{
	for (int k = 0; k < N; k++)
		called();
}

static void count(const char *name, const void *at, void (*run)(void))
{
	struct perf_event_attr attr = { .type = PERF_TYPE_BREAKPOINT, .size = sizeof attr, .bp_type = HW_BREAKPOINT_X,
					.bp_addr = (uintptr_t)at, .bp_len = sizeof(long), .exclude_kernel = 1 };
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	uint64_t met;

	run();
	if (fd < 0 || read(fd, &met, sizeof met) != sizeof met)
		perror(name);
	else
		printf("%s %llu\n", name, (unsigned long long)met);
	close(fd);
}

int main(void)
{
	count("called", called, call);
	count("repeated", repeated, store_repeatedly);
	for (int k = 0; k < N; k++)
		if (!to[k])
			puts("wrong");
	return 0;
}
