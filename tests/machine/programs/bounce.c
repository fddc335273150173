/*
 * Two threads that write one line in turn, each waiting for the other's value.
 *
 * usage: bounce CPU CPU
 *
 * A thread's store takes the line away from the other thread's core, so the next
 * load there finds it modified in this core: one such load for each store. On
 * two threads of one core there is none.
 *
 *: rounds = 20000
 *: modified = 2 * rounds
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROUNDS = 20000 };
static volatile struct {
	uint64_t turn;
	char pad[4088];
} line __attribute__((aligned(4096)));
static int cpu[2];

static void play(int me)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu[me], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
	for (uint64_t n = 0; n < ROUNDS; n++) {
		while (line.turn != 2 * n + me)
			__asm__ volatile("pause");
		line.turn = 2 * n + me + 1;
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
	return 0;
}
