// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes samples into rings as a BPF program does, and reads them. The first line has the number of CPUs.
 * Each other is a step, with numbers in decimal:
 *
 *     put CPU TIME    a sample
 *     take BEFORE     prints the next sample that is older: its time, how many were lost before it, and the
 *                     first and last time of that; or "-" and zeros
 *     burst CPU NR    NR samples, each of a time later by one; each is printed
 *     meanwhile LOOKS CPU NR  such a burst once a ring has been looked at LOOKS more times by a drain
 *     drain           takes all samples that are there
 */
#include <stdio.h>

static unsigned long long look(const unsigned long long *written);

/* The program may write at any moment. What is read of a ring's head shows when. */
#define __atomic_load_n(pointer, order) look(pointer)
#include "aggregation/rings.c"
#undef __atomic_load_n

#define SAMPLES	    8
#define BURSTS_MOST 16

static struct rings rings = {.nr_samples = SAMPLES,
			     .sample_size = sizeof(struct sample_head) + sizeof(__u64)};
static unsigned long long now;
static struct burst {
	int looks, cpu, nr;
} bursts[BURSTS_MOST];
static int nr_bursts, next_burst;

static void put(int cpu, unsigned long long time)
{
	struct ring_head *head = (void *)ring_at(&rings, cpu);
	struct sample_head *written =
		(void *)((char *)(head + 1) + head->written % SAMPLES * rings.sample_size);

	written->time = time;
	head->written++;
}

static void put_burst(const struct burst *burst)
{
	for (int i = 0; i < burst->nr; i++) {
		put(burst->cpu, ++now);
		printf("put %d %llu\n", burst->cpu, now);
	}
}

static unsigned long long look(const unsigned long long *written)
{
	unsigned long long seen = *written;

	if (next_burst < nr_bursts && !--bursts[next_burst].looks)
		put_burst(&bursts[next_burst++]);
	return seen;
}

static bool take(unsigned long long before)
{
	struct ring_loss loss = {0};
	struct streamed sample = {0};
	bool taken = rings_next(&rings, before, &sample, &loss);

	if (taken)
		printf("%llu", (unsigned long long)sample.time);
	printf("%s %llu %llu %llu\n", taken ? "" : "-", (unsigned long long)loss.samples,
	       (unsigned long long)loss.since, (unsigned long long)loss.until);
	return taken;
}

static int step(const char *line)
{
	struct burst burst;
	unsigned long long time;
	int cpu;

	if (sscanf(line, "put %d %llu", &cpu, &time) == 2) {
		put(cpu, time);
	} else if (sscanf(line, "take %llu", &time) == 1) {
		take(time);
	} else if (sscanf(line, "burst %d %d", &burst.cpu, &burst.nr) == 2) {
		put_burst(&burst);
	} else if (sscanf(line, "meanwhile %d %d %d", &burst.looks, &burst.cpu, &burst.nr) == 3) {
		if (nr_bursts == BURSTS_MOST)
			return 1;
		bursts[nr_bursts++] = burst;
	} else {
		time = now + 1;
		while (take(time))
			;
		nr_bursts = next_burst = 0;
	}
	return 0;
}

int main(void)
{
	char line[100];
	int failed = 0;

	if (!fgets(line, sizeof(line), stdin) || sscanf(line, "%d", &rings.nr_cpus) != 1)
		return 1;
	rings.mapped = xcalloc(rings.nr_cpus, ring_size(&rings));
	rings.read = xcalloc(rings.nr_cpus, sizeof(*rings.read));
	rings.known = xcalloc(rings.nr_cpus, sizeof(*rings.known));
	rings.times = xcalloc(rings.nr_cpus, sizeof(*rings.times));
	rings.turns = xcalloc(rings.nr_cpus, sizeof(*rings.turns));
	rings.sample = xmalloc(rings.sample_size);
	while (!failed && fgets(line, sizeof(line), stdin))
		failed = step(line);
	free(rings.mapped);
	rings.mapped = NULL;
	free(rings.read);
	free(rings.known);
	free(rings.times);
	free(rings.turns);
	free(rings.sample);
	return failed;
}
