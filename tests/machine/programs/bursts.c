/*
 * Loads that are unevenly spread over time, for events that share counters.
 *
 * usage: bursts burst MS TOTAL_MS SEED     one burst of loads, at a random time
 *        bursts bursts MS TOTAL_MS SEED    four such bursts, which together take MS
 *        bursts children MS NUMBER SEED    as many children in turn, each of 1 ms to MS
 *        bursts parallel MS NUMBER SEED    the same, four at a time
 *        bursts chain MS NUMBER SEED       the same as children, in a process that executes itself again
 *        bursts step MS TOTAL_MS SEED      loads in the last third of each MS, after a random time
 *        bursts tails MS TOTAL_MS SEED     phases of loads and of none, with lengths of a heavy tail
 *        bursts rare MS TOTAL_MS SEED      short bursts between long pauses, a few of them a hundred times as long
 *        bursts tree MS DEPTH SEED         processes that each have two children in turn, which execute this program
 *                                          again; those of DEPTH 0 live as children do
 *        bursts pool MS TOTAL_MS SEED      four threads at a time, all of them busy; one loads, in bursts of up to MS
 *
 * A ms is 200,000 instructions, which is what the machine executes in one. A burst loads with each third, and
 * between bursts nothing is loaded. A child loads with each third during a part of its life, which is at its
 * beginning, in the middle or at its end. Everything follows from the seed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS_OF_A_MS = 200000 / 3 };
static uint64_t state;

/* A random number below `most` (Numerical Recipes' constants). */
static uint64_t chosen(uint64_t most)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return most ? (state >> 33) % most : 0;
}

static void load(long turns)
{
	if (turns > 0)
		__asm__ volatile("1: mov (%%rsp), %%rax\n dec %0\n jnz 1b" : "+r"(turns)::"rax", "cc");
}

static void pause_for(long turns)
{
	if (turns > 0)
		__asm__ volatile("1: nop\n dec %0\n jnz 1b" : "+r"(turns)::"cc");
}

static void bursts(long number, long loading, long total)
{
	long idle = total - loading;

	for (long i = 0; i < number; i++) {
		long before = chosen(idle);

		pause_for(before);
		load(loading / number);
		idle -= before;
	}
	pause_for(idle);
}

static void in_step(long length, long total)
{
	for (pause_for(chosen(length)); total > 0; total -= length) {
		pause_for(length - length / 3);
		load(length / 3);
	}
}

static void live(long most)
{
	long total = TURNS_OF_A_MS + chosen(most - TURNS_OF_A_MS + 1), loading = chosen(total);

	bursts(1, loading, total);
}

static void children(long most, long number, long at_a_time)
{
	for (long begun = 0; begun < number; begun++) {
		if (begun >= at_a_time)
			wait(NULL);
		if (!fork()) {
			live(most);
			_exit(0);
		}
		chosen(1);
	}
	while (wait(NULL) > 0)
		;
}

/* Lengths that are as often twice as long as they are half as frequent: Pareto's, up to the whole time. */
static void tails(long least, long total)
{
	while (total > 0) {
		long length = least;

		while (length < total && chosen(2))
			length *= 2;
		length = length < total ? length : total;
		if (chosen(2))
			load(length);
		else
			pause_for(length);
		total -= length;
	}
}

/* A length has four times another with a quarter of its frequency: each size adds as much, up to 256 times. */
static long heavy(long least)
{
	long length = least;

	while (length < 256 * least && !chosen(4))
		length *= 4;
	return length;
}

static void rare(long least, long total)
{
	while (total > 0) {
		long idle = 8 * heavy(least), loading = heavy(least);

		pause_for(idle < total ? idle : total);
		total -= idle;
		load(loading < total ? loading : total);
		total -= loading;
	}
}

static void execute_again(char **argv, long number)
{
	char rest[24], seed[24];

	snprintf(rest, sizeof(rest), "%ld", number);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)state);
	execl("/proc/self/exe", argv[0], argv[1], argv[2], rest, seed, NULL);
}

static void tree(char **argv, long most, long depth)
{
	if (!depth) {
		live(most);
		return;
	}
	for (int i = 0; i < 2; i++) {
		pid_t child;

		child = fork();
		if (!child) {
			state += (uint64_t)(2 * depth + i) << 40; /* each lives otherwise */
			execute_again(argv, depth - 1);
			_exit(1);
		}
		waitpid(child, NULL, 0);
	}
}

struct part {
	long lengths[64]; /* of pauses and bursts in turn; a thread without bursts has one pause */
};

static void *play(void *of)
{
	const struct part *part = of;

	for (int i = 0; i < 64; i += 2) {
		pause_for(part->lengths[i]);
		load(part->lengths[i + 1]);
	}
	return NULL;
}

/* Threads share no state, so that nothing depends on the order in which the kernel runs them. */
static void pool(long most, long total)
{
	enum { THREADS = 4 };
	struct part parts[THREADS] = {0};
	struct part *busy = &parts[chosen(THREADS)];
	pthread_t threads[THREADS];
	long left = total / THREADS;

	for (int i = 0; i < THREADS; i++)
		parts[i].lengths[0] = left;
	for (int i = 0; i < 64; i += 2) {
		long pause = chosen(left / 4), loading = chosen(most);

		busy->lengths[i] = pause;
		busy->lengths[i + 1] = loading < left - pause ? loading : left - pause;
		left -= pause + busy->lengths[i + 1];
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, play, &parts[i]))
			exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	long first, second;

	if (argc != 5)
		return 2;
	first = atol(argv[2]) * TURNS_OF_A_MS;
	second = atol(argv[3]);
	state = strtoull(argv[4], NULL, 10);
	chosen(1);
	chosen(1);
	if (!strcmp(argv[1], "burst") || !strcmp(argv[1], "bursts"))
		bursts(argv[1][5] ? 4 : 1, first, second * TURNS_OF_A_MS);
	else if (!strcmp(argv[1], "step"))
		in_step(first, second * TURNS_OF_A_MS);
	else if (!strcmp(argv[1], "tails"))
		tails(first / 8, second * TURNS_OF_A_MS);
	else if (!strcmp(argv[1], "children"))
		children(first, second, 1);
	else if (!strcmp(argv[1], "parallel"))
		children(first, second, 4);
	else if (!strcmp(argv[1], "rare"))
		rare(first / 16, second * TURNS_OF_A_MS);
	else if (!strcmp(argv[1], "tree"))
		tree(argv, first, second);
	else if (!strcmp(argv[1], "pool"))
		pool(first, second * TURNS_OF_A_MS);
	else if (!strcmp(argv[1], "chain")) {
		live(first);
		if (second > 1)
			execute_again(argv, second - 1);
	}
	return 0;
}
