// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes samples into rings as a BPF program does, and reads them. The first line has the number of CPUs.
 * Each other is a step, with numbers in decimal:
 *
 *     put CPU TIME    a sample
 *     take BEFORE     prints the time of the next sample that is older, or "-", and how many were lost
 */
#include <stdio.h>

#include "aggregation/rings.c"

#define SAMPLES 8

int main(void)
{
	struct rings rings = {.nr_samples = SAMPLES,
			      .sample_size = sizeof(struct sample_head) + sizeof(__u64)};
	struct streamed sample;
	unsigned long long time;
	char line[100];
	int cpu;

	if (!fgets(line, sizeof(line), stdin) || sscanf(line, "%d", &rings.nr_cpus) != 1)
		return 1;
	rings.mapped = xcalloc(rings.nr_cpus, ring_size(&rings));
	rings.read = xcalloc(rings.nr_cpus, sizeof(*rings.read));
	rings.times = xcalloc(rings.nr_cpus, sizeof(*rings.times));
	rings.turns = xcalloc(rings.nr_cpus, sizeof(*rings.turns));
	rings.sample = xmalloc(rings.sample_size);
	while (fgets(line, sizeof(line), stdin)) {
		struct ring_loss loss = {0};

		if (sscanf(line, "put %d %llu", &cpu, &time) == 2) {
			struct ring_head *head = (void *)ring_at(&rings, cpu);
			struct sample_head *written =
				(void *)((char *)(head + 1) + head->written % SAMPLES * rings.sample_size);

			written->time = time;
			head->written++;
		} else if (sscanf(line, "take %llu", &time) != 1) {
			return 1;
		} else if (rings_next(&rings, time, &sample, &loss)) {
			printf("%llu %llu\n", (unsigned long long)sample.time,
			       (unsigned long long)loss.samples);
		} else {
			printf("- %llu\n", (unsigned long long)loss.samples);
		}
	}
	free(rings.mapped);
	rings.mapped = NULL;
	free(rings.read);
	free(rings.times);
	free(rings.turns);
	free(rings.sample);
	return 0;
}
