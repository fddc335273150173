// SPDX-License-Identifier: GPL-2.0-only
#include "collection/sample_cost.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include "base/clock.h"

/* The estimate if it can't be measured, and the limits of what a measurement is believed to be. In ns. */
#define COST_GUESSED 5000
#define COST_LEAST   100
#define COST_MOST    50000

/* Of many short tries the shortest is used: it was not disturbed by other programs or by the other thread of
 * the core. */
#define TRIES 12

#define SELDOM (1ULL << 40)

#define PAGES 64

enum kind { BY_TIMER, BY_PMU, IN_KERNEL, KINDS };

static void spin(void)
{
	for (volatile unsigned int i = 0; i < 1000000; i++)
		;
}

static void touch(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	volatile char *memory =
		mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return;
	for (size_t i = 0; i < PAGES; i++)
		memory[i * page] = 1;
	munmap((void *)memory, PAGES * page);
}

/* What is measured, with a period at which samples are frequent, but not so frequent that the kernel
 * throttles the event: 40,000 a second are less than half of its usual limit,
 * kernel.perf_event_max_sample_rate. The CPU time of the thread does not include other programs, which a busy
 * CPU also runs, but it may not include a timer's interrupts either (CONFIG_IRQ_TIME_ACCOUNTING); so the
 * timer is measured by real time. */
static const struct {
	__u32 type;
	__u64 config, period;
	void (*work)(void);
	clockid_t clock;
} kinds[KINDS] = {
	[BY_TIMER] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 25000, spin, CLOCK_MONOTONIC},
	[BY_PMU] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 100000, spin, CLOCK_THREAD_CPUTIME_ID},
	[IN_KERNEL] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1, touch, CLOCK_THREAD_CPUTIME_ID},
};

/* The time of the work, and the event's count. The event is disabled when the work is done. */
struct measured_cost {
	__u64 ns, count;
};

static int open_event(enum kind kind, __u64 period)
{
	struct perf_event_attr attr = {
		.type = kinds[kind].type,
		.size = sizeof(attr),
		.config = kinds[kind].config,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
		.exclude_hv = 1,
	};

	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 || errno != EACCES)
		return fd;
	attr.exclude_kernel = 1;
	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool measure_once(int fd, enum kind kind, struct measured_cost *least)
{
	struct measured_cost one;
	__u64 before;

	if (ioctl(fd, PERF_EVENT_IOC_RESET, 0) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return false;
	before = clock_ns(kinds[kind].clock);
	kinds[kind].work();
	one.ns = clock_ns(kinds[kind].clock) - before;
	if (ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) ||
	    read(fd, &one.count, sizeof(one.count)) != sizeof(one.count))
		return false;
	if (!least->ns || one.ns < least->ns)
		*least = one;
	return true;
}

/* Measures both in turns, so that they run under the same conditions. */
static bool measure_both(enum kind kind, int seldom, int often, struct measured_cost *counted,
			 struct measured_cost *sampled)
{
	for (int i = 0; i < TRIES; i++)
		if (!measure_once(seldom, kind, counted) || !measure_once(often, kind, sampled))
			return false;
	return sampled->count >= kinds[kind].period;
}

static __u64 measure_cost(enum kind kind)
{
	struct measured_cost counted = {0}, sampled = {0};
	__u64 period = kinds[kind].period, cost;
	int seldom = open_event(kind, SELDOM), often = open_event(kind, period);
	bool measured = seldom >= 0 && often >= 0 && measure_both(kind, seldom, often, &counted, &sampled);

	if (seldom >= 0)
		close(seldom);
	if (often >= 0)
		close(often);
	if (!measured)
		return COST_GUESSED;
	cost = sampled.ns > counted.ns ? (sampled.ns - counted.ns) * period / sampled.count : 0;
	return cost < COST_LEAST ? COST_LEAST : cost > COST_MOST ? COST_MOST : cost;
}

static enum kind kind_of(const struct event *event)
{
	if (event_is_clock(event))
		return BY_TIMER;
	switch (event->attr.type) {
	case PERF_TYPE_SOFTWARE:
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_BREAKPOINT:
		return IN_KERNEL;
	default:
		return BY_PMU;
	}
}

__u64 sample_cost(const struct event *event)
{
	static __u64 known[KINDS];
	enum kind kind = kind_of(event);

	if (!known[kind])
		known[kind] = measure_cost(kind);
	return known[kind];
}
