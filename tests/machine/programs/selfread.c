// SPDX-License-Identifier: GPL-2.0-only
/*
 * An example of how a program reads its own counter without a system call and without a library.
 *
 * usage: selfread
 *
 * It counts its own instructions at user level around a loop with a known number of instructions,
 * by RDPMC, and before and after that by read(2). It prints "read N", "rdpmc N", "read N" and "loop
 * N", the count of the loop by RDPMC. Exit status 2 if there is no such counter.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 *: turns = 500000
 */
#define TURNS 500000

static inline uint64_t rdpmc(uint32_t counter)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
	return low | (uint64_t)high << 32;
}

/* The count so far. The kernel's page says which counter the event is on, and what the event had
 * counted before; `lock` changes when any of this changes, and then all of it is read again. While
 * the event is on no counter (index 0), what it had counted before is the whole count. */
static uint64_t self_read(const volatile struct perf_event_mmap_page *page)
{
	uint32_t lock, index, width;
	uint64_t count;

	do {
		lock = page->lock;
		__asm__ volatile("" ::: "memory");
		index = page->index;
		width = page->pmc_width;
		count = page->offset;
		if (page->cap_user_rdpmc && index) {
			/* A counter has fewer than 64 bits; its highest bit is its sign. */
			int64_t raw = rdpmc(index - 1) << (64 - width);

			count += raw >> (64 - width);
		}
		__asm__ volatile("" ::: "memory");
	} while (page->lock != lock);
	return count;
}

static uint64_t read_it(int fd)
{
	uint64_t count = 0;

	if (read(fd, &count, sizeof(count)) != sizeof(count))
		perror("read");
	return count;
}

int main(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct perf_event_mmap_page *page;
	uint64_t first, begin, end, last;
	uint32_t turns = TURNS;

	if (fd < 0) {
		fprintf(stderr, "selfread: no counter of instructions: %s\n", strerror(errno));
		return 2;
	}
	page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || !page->cap_user_rdpmc) {
		fprintf(stderr, "selfread: the counter may not be read here: see "
			"/sys/bus/event_source/devices/cpu/rdpmc\n");
		return 2;
	}
	first = read_it(fd);
	begin = self_read(page);
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns));
	end = self_read(page);
	last = read_it(fd);
	printf("read %llu\nrdpmc %llu\nread %llu\nloop %llu\n", (unsigned long long)first,
	       (unsigned long long)end, (unsigned long long)last, (unsigned long long)(end - begin));
	return 0;
}
