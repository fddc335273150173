/*
 * One processor leaves lines in its caches, another one accesses them.
 *
 * usage: handover CPU CPU clean|dirty|left read|write
 *
 * The first flushes 256 lines (half of the L1D) and loads or stores them, the
 * second loads or stores them right afterwards; 40 times. Left: the first loads them, and then
 * twice as many other lines as its second-level cache holds.
 *
 *: taken = 40 * 256
 *: others = 512 * 1024 / 64
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

enum { LINES = 256, TURNS = 40 };
static char buffer[LINES * 64] __attribute__((aligned(4096)));
static volatile char others[512 << 10];

static void move_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
}

#define EACH_LINE(label, instruction)                                                              \
	__asm__ volatile(label instruction "add $64, %0\ndec %1\njnz 1b"                           \
			 : "+r"(at), "+r"(n)                                                       \
			 :                                                                         \
			 : "rax", "memory", "cc")

static void each(char what)
{
	char *at = buffer;
	long n = LINES;

	if (what == 'f')
		EACH_LINE("1:", "clflush (%0)\n");
	else if (what == 'r')
		EACH_LINE(".globl handover_load\n1: handover_load: ", "mov (%0), %%rax\n");
	else
		EACH_LINE(".globl handover_store\n1: handover_store: ", "mov %%rax, (%0)\n");
	__asm__ volatile("mfence" ::: "memory");
}

int main(int argc, char **argv)
{
	int from, to;

	if (argc != 5)
		return 2;
	from = atoi(argv[1]);
	to = atoi(argv[2]);
	each('w');
	for (unsigned at = 0; at < sizeof(others); at += 4096)
		others[at] = 1; /* a frame of its own for each page */
	for (int turn = 0; turn < TURNS; turn++) {
		move_to(from);
		each('f');
		each(argv[3][0] == 'd' ? 'w' : 'r');
		for (unsigned at = 0; argv[3][0] == 'l' && at < sizeof(others); at += 64)
			(void)others[at];
		move_to(to);
		each(argv[4][0]);
	}
	return 0;
}
