// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/memory.h"
#include "shared.h"

struct rings {
	struct bpf_map *map;
	char *mapped; /* nr_cpus rings behind each other */
	int nr_cpus;
	size_t sample_size;
	__u64 *read;  /* samples of each ring that have been read so far */
	char *sample; /* the last one that was read */
};

size_t rings_bytes(size_t key_size)
{
	return sizeof(struct ring_head) + RING_SAMPLES * (sizeof(struct sample_head) + key_size);
}

struct rings *rings_prepare(struct bpf_object *object, int nr_cpus, size_t key_size)
{
	struct rings *rings = xcalloc(1, sizeof(*rings));

	rings->map = bpf_object__find_map_by_name(object, "rings");
	rings->nr_cpus = nr_cpus;
	rings->sample_size = sizeof(struct sample_head) + key_size;
	rings->read = xcalloc(nr_cpus, sizeof(*rings->read));
	rings->sample = xmalloc(rings->sample_size);
	bpf_map__set_max_entries(rings->map, nr_cpus);
	return rings;
}

static size_t ring_size(const struct rings *rings)
{
	return sizeof(struct ring_head) + RING_SAMPLES * rings->sample_size;
}

int rings_map(struct rings *rings)
{
	rings->mapped = mmap(NULL, ring_size(rings) * rings->nr_cpus, PROT_READ, MAP_SHARED,
			     bpf_map__fd(rings->map), 0);
	if (rings->mapped != MAP_FAILED)
		return 0;
	rings->mapped = NULL;
	return -errno;
}

void rings_close(struct rings *rings)
{
	if (!rings)
		return;
	if (rings->mapped)
		munmap(rings->mapped, ring_size(rings) * rings->nr_cpus);
	free(rings->read);
	free(rings->sample);
	free(rings);
}

static const char *ring_at(const struct rings *rings, int cpu)
{
	return rings->mapped + cpu * ring_size(rings);
}

static __u64 written(const struct rings *rings, int cpu)
{
	const struct ring_head *head = (const void *)ring_at(rings, cpu);

	return __atomic_load_n(&head->written, __ATOMIC_ACQUIRE);
}

static const char *next_in_ring(const struct rings *rings, int cpu)
{
	return ring_at(rings, cpu) + sizeof(struct ring_head) +
	       (rings->read[cpu] & (RING_SAMPLES - 1)) * rings->sample_size;
}

/* Skips what has been overwritten, and the sample that is being written next. */
static void skip_overwritten(struct rings *rings, int cpu, __u64 *lost)
{
	__u64 behind = written(rings, cpu) - rings->read[cpu];

	if (behind < RING_SAMPLES)
		return;
	*lost += behind - (RING_SAMPLES - 1);
	rings->read[cpu] += behind - (RING_SAMPLES - 1);
}

/* The CPU whose next sample is the oldest, or -1. */
static int oldest(struct rings *rings, __u64 before, __u64 *lost)
{
	__u64 least = before;
	int found = -1;

	for (int cpu = 0; cpu < rings->nr_cpus; cpu++) {
		const volatile struct sample_head *head;

		skip_overwritten(rings, cpu, lost);
		head = (const void *)next_in_ring(rings, cpu);
		if (rings->read[cpu] == written(rings, cpu) || head->time >= least)
			continue;
		least = head->time;
		found = cpu;
	}
	return found;
}

bool rings_next(struct rings *rings, __u64 before, struct streamed *sample, __u64 *lost)
{
	const struct sample_head *head = (const void *)rings->sample;
	int cpu;

	while ((cpu = oldest(rings, before, lost)) >= 0) {
		__u64 at = rings->read[cpu];

		memcpy(rings->sample, next_in_ring(rings, cpu), rings->sample_size);
		skip_overwritten(rings, cpu, lost);
		if (rings->read[cpu] != at) /* overwritten while it was copied */
			continue;
		rings->read[cpu]++;
		*sample = (struct streamed){head->time, head->address, head->latency, head->period, head + 1};
		return true;
	}
	return false;
}
