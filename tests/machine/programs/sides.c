/*
 * Software events on known sides: faults of the program itself, faults of the kernel on the program's behalf,
 * and switches and moves between CPUs 0 and 1, which happen in the kernel's scheduler.
 *
 *: faults = 64
 *: naps = 40
 *: moves = 20
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FAULTS 64 /* on each side */
#define NAPS   40
#define MOVES  20
#define PAGE   4096

static char *fresh_pages(void)
{
	char *pages = mmap(NULL, FAULTS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(pages, FAULTS * PAGE, MADV_NOHUGEPAGE);
	return pages;
}

int main(void)
{
	char *own = fresh_pages(), *kernels = fresh_pages();
	int zero = open("/dev/zero", O_RDONLY);
	struct timespec nap = {.tv_nsec = 1000000};

	if (own == MAP_FAILED || kernels == MAP_FAILED || zero < 0)
		return 1;
	for (int i = 0; i < FAULTS; i++) {
		*(volatile char *)(own + i * PAGE) = 1;
		if (read(zero, kernels + i * PAGE, 1) != 1)
			return 1;
	}
	for (int i = 0; i < NAPS; i++)
		nanosleep(&nap, NULL);
	for (int i = 0; i < MOVES; i++) {
		cpu_set_t one;

		CPU_ZERO(&one);
		CPU_SET(i % 2, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	return 0;
}
