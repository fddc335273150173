/*
 * Two threads that share a line but no word of it (false sharing): in turn, each loads and stores a
 * word that the other never touches. The number of the turn is in another line.
 *
 * usage: apart CPU CPU
 *
 * Between two turns of a thread the other one stores to the line, so each load but the very first
 * finds the line modified in the other core.
 *
 *: rounds = 15000
 *: loads = 2 * rounds
 *: left_offset = 8
 *: right_offset = 48
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROUNDS = 15000 };
static volatile struct {
	uint64_t number;
	char pad[4088];
} turn __attribute__((aligned(4096)));
volatile uint64_t words[512] __attribute__((aligned(4096)));
static int cpu[2];

/* The load and the store of each thread have labels. */
#define TOUCH(side, offset)                                                                        \
	__asm__ volatile(".globl " side "_load, " side "_store\n"                                  \
			 side "_load: mov words+" offset "(%%rip), %%rax\n"                        \
			 "inc %%rax\n"                                                             \
			 side "_store: mov %%rax, words+" offset "(%%rip)"                         \
			 ::: "rax", "memory")

static void play(int me)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu[me], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
	for (uint64_t n = 0; n < ROUNDS; n++) {
		while (turn.number != 2 * n + me)
			__asm__ volatile("pause");
		if (me)
			TOUCH("right", "48");
		else
			TOUCH("left", "8");
		turn.number = 2 * n + me + 1;
	}
}

static void *partner(void *arg)
{
	play(1);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 3)
		return 2;
	cpu[0] = atoi(argv[1]);
	cpu[1] = atoi(argv[2]);
	pthread_create(&thread, NULL, partner, NULL);
	play(0);
	pthread_join(thread, NULL);
	return words[1] == ROUNDS && words[6] == ROUNDS ? 0 : 1;
}
