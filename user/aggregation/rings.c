// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "aggregation/constants.h"
#include "base/memory.h"
#include "shared.h"

/* Maps of a program in which an element has a fixed size. */
struct array {
	struct bpf_map *map;
	char *mapped;
	size_t size;
};

/* A ring that has a sample, and when that was taken. */
struct ring_turn {
	__u64 time;
	int cpu;
};

struct rings {
	struct bpf_map *map;
	char *mapped; /* nr_cpus rings behind each other */
	struct array arrays[RING_EXTRAS];
	struct ring_extras extras;
	int nr_cpus;
	size_t nr_samples, sample_size; /* of a ring; of a sample, in bytes, without extras */
	__u64 *read;			/* samples of each ring that have been read, or skipped, so far */
	__u64 *known;			/* of each ring: the same up to the last one that was read */
	__u64 *times;			/* of each ring: when that one was taken */
	struct ring_turn *turns;	/* a heap: no ring comes after one that it is the parent of */
	int nr_turns;
	__u64 before; /* what the turns are for */
	char *sample; /* the last one that was read, with its extras */
};

static const char *const array_names[] = {
	[RING_EXTRA_REGISTERS] = "ring_registers",
	[RING_EXTRA_STACK] = "ring_stacks",
	[RING_EXTRA_BRANCHES] = "ring_branches",
};

size_t rings_extra_at(size_t key_size, const struct ring_extras *extras, enum ring_extra extra)
{
	size_t at = key_size;

	for (unsigned int i = 0; i < extra; i++)
		at += extras->bytes[i];
	return at;
}

size_t rings_tail(size_t key_size, const struct ring_extras *extras)
{
	return rings_extra_at(key_size, extras, RING_EXTRAS);
}

/* All rings take no more than their share, unless that leaves too little for one event. Several events have
 * as few samples together as one has at least. */
static size_t nr_samples(int nr_cpus, size_t sample_size, const struct ring_share *share)
{
	size_t nr = RING_SAMPLES_MOST, all = nr * share->events;

	while (nr > RING_SAMPLES_FEWEST && all > RING_SAMPLES_LEAST &&
	       all * sample_size * nr_cpus > share->bytes) {
		nr /= 2;
		all /= 2;
	}
	return nr;
}

static size_t ring_bytes(size_t nr_samples, size_t sample_size)
{
	return sizeof(struct ring_head) + nr_samples * sample_size;
}

size_t rings_bytes(int nr_cpus, size_t key_size, const struct ring_extras *extras,
		   const struct ring_share *share)
{
	size_t sample_size = sizeof(struct sample_head) + rings_tail(key_size, extras);

	return ring_bytes(nr_samples(nr_cpus, sample_size, share), sample_size);
}

static size_t ring_size(const struct rings *rings)
{
	return ring_bytes(rings->nr_samples, rings->sample_size);
}

static void prepare_array(struct rings *rings, struct bpf_object *object, enum ring_extra extra)
{
	struct array *array = &rings->arrays[extra];

	array->map = bpf_object__find_map_by_name(object, array_names[extra]);
	array->size = rings->extras.bytes[extra];
	bpf_map__set_autocreate(array->map, array->size);
	if (!array->size)
		return;
	bpf_map__set_value_size(array->map, array->size);
	bpf_map__set_max_entries(array->map, rings->nr_samples * rings->nr_cpus);
}

struct rings *rings_prepare(struct bpf_object *object, int nr_cpus, size_t key_size,
			    const struct ring_extras *extras, const struct ring_share *share)
{
	struct rings *rings = xcalloc(1, sizeof(*rings));
	size_t tail = rings_tail(key_size, extras);

	rings->map = bpf_object__find_map_by_name(object, "rings");
	rings->nr_cpus = nr_cpus;
	rings->sample_size = sizeof(struct sample_head) + key_size;
	rings->extras = *extras;
	rings->nr_samples = nr_samples(nr_cpus, sizeof(struct sample_head) + tail, share);
	rings->read = xcalloc(nr_cpus, sizeof(*rings->read));
	rings->known = xcalloc(nr_cpus, sizeof(*rings->known));
	rings->times = xcalloc(nr_cpus, sizeof(*rings->times));
	rings->turns = xcalloc(nr_cpus, sizeof(*rings->turns));
	rings->sample = xmalloc(sizeof(struct sample_head) + tail);
	constants_set(object, "ring_mask", rings->nr_samples - 1);
	bpf_map__set_value_size(rings->map, ring_size(rings));
	bpf_map__set_max_entries(rings->map, nr_cpus);
	for (unsigned int i = 0; i < RING_EXTRAS; i++)
		prepare_array(rings, object, i);
	return rings;
}

static void leave_out(struct bpf_object *object, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	if (map)
		bpf_map__set_autocreate(map, false);
}

void rings_leave_out(struct bpf_object *object)
{
	leave_out(object, "rings");
	for (unsigned int i = 0; i < RING_EXTRAS; i++)
		leave_out(object, array_names[i]);
}

static size_t array_bytes(const struct rings *rings, const struct array *array)
{
	return rings->nr_samples * rings->nr_cpus * array->size;
}

static int map_array(const struct rings *rings, struct array *array)
{
	if (!array->size)
		return 0;
	array->mapped =
		mmap(NULL, array_bytes(rings, array), PROT_READ, MAP_SHARED, bpf_map__fd(array->map), 0);
	if (array->mapped != MAP_FAILED)
		return 0;
	array->mapped = NULL;
	return -errno;
}

int rings_map(struct rings *rings)
{
	rings->mapped = mmap(NULL, ring_size(rings) * rings->nr_cpus, PROT_READ, MAP_SHARED,
			     bpf_map__fd(rings->map), 0);
	if (rings->mapped == MAP_FAILED) {
		rings->mapped = NULL;
		return -errno;
	}
	for (unsigned int i = 0; i < RING_EXTRAS; i++) {
		int err = map_array(rings, &rings->arrays[i]);

		if (err)
			return err;
	}
	return 0;
}

void rings_close(struct rings *rings)
{
	if (!rings)
		return;
	if (rings->mapped)
		munmap(rings->mapped, ring_size(rings) * rings->nr_cpus);
	for (unsigned int i = 0; i < RING_EXTRAS; i++)
		if (rings->arrays[i].mapped)
			munmap(rings->arrays[i].mapped, array_bytes(rings, &rings->arrays[i]));
	free(rings->read);
	free(rings->known);
	free(rings->times);
	free(rings->turns);
	free(rings->sample);
	free(rings);
}

static const char *ring_at(const struct rings *rings, int cpu)
{
	return rings->mapped + cpu * ring_size(rings);
}

static __u64 written_bytes(const struct rings *rings, int cpu)
{
	const struct ring_head *head = (const void *)ring_at(rings, cpu);

	return __atomic_load_n(&head->written, __ATOMIC_ACQUIRE);
}

bool rings_are_behind(const struct rings *rings)
{
	for (int cpu = 0; cpu < rings->nr_cpus; cpu++)
		if (written_bytes(rings, cpu) - rings->read[cpu] >= rings->nr_samples / 2)
			return true;
	return false;
}

static const char *next_in_ring(const struct rings *rings, int cpu)
{
	return ring_at(rings, cpu) + sizeof(struct ring_head) +
	       (rings->read[cpu] & (rings->nr_samples - 1)) * rings->sample_size;
}

/* Skips what has been overwritten, and the sample that is being written next. */
static void skip_overwritten(struct rings *rings, int cpu)
{
	__u64 behind = written_bytes(rings, cpu) - rings->read[cpu];

	if (behind >= rings->nr_samples)
		rings->read[cpu] += behind - (rings->nr_samples - 1);
}

/* Moves a turn towards the end of the heap, to where it belongs. */
static void sink_turn(struct rings *rings, int at)
{
	struct ring_turn moved = rings->turns[at];

	for (int child; (child = 2 * at + 1) < rings->nr_turns; at = child) {
		if (child + 1 < rings->nr_turns && rings->turns[child + 1].time < rings->turns[child].time)
			child++;
		if (moved.time <= rings->turns[child].time)
			break;
		rings->turns[at] = rings->turns[child];
	}
	rings->turns[at] = moved;
}

/* Whether the ring has a sample that is old enough; sets its time. A sample that was overwritten meanwhile
 * has the time of a newer one than those behind it. */
static bool has_turn(struct rings *rings, int cpu, __u64 *time)
{
	__u64 at;

	do {
		const volatile struct sample_head *head = (const void *)next_in_ring(rings, cpu);

		at = rings->read[cpu];
		if (at == written_bytes(rings, cpu))
			return false;
		*time = head->time;
		skip_overwritten(rings, cpu);
	} while (at != rings->read[cpu]);
	return *time < rings->before;
}

static void begin_turns(struct rings *rings, __u64 before)
{
	rings->before = before;
	rings->nr_turns = 0;
	for (int cpu = 0; cpu < rings->nr_cpus; cpu++) {
		struct ring_turn *turn = &rings->turns[rings->nr_turns];

		turn->cpu = cpu;
		rings->nr_turns += has_turn(rings, cpu, &turn->time);
	}
	for (int at = rings->nr_turns / 2; at--;)
		sink_turn(rings, at);
}

/* The first ring's next sample is another one. */
static void change_turn(struct rings *rings)
{
	if (!has_turn(rings, rings->turns->cpu, &rings->turns->time))
		rings->turns[0] = rings->turns[--rings->nr_turns];
	sink_turn(rings, 0);
}

static void copy_next(struct rings *rings, int cpu)
{
	size_t at = cpu * rings->nr_samples + (rings->read[cpu] & (rings->nr_samples - 1));
	char *to = mempcpy(rings->sample, next_in_ring(rings, cpu), rings->sample_size);

	for (unsigned int i = 0; i < RING_EXTRAS; i++)
		if (rings->arrays[i].size)
			to = mempcpy(to, rings->arrays[i].mapped + at * rings->arrays[i].size,
				     rings->arrays[i].size);
}

/* The sample that was copied is the ring's next one. What was skipped before it is told with it, so that the
 * order of time holds for losses too. */
static void take_copied(struct rings *rings, int cpu, struct streamed *sample, struct ring_loss *loss)
{
	const struct sample_head *head = (const void *)rings->sample;
	__u64 skipped = rings->read[cpu] - rings->known[cpu];

	*loss = skipped ? (struct ring_loss){skipped, rings->times[cpu], head->time} : (struct ring_loss){0};
	rings->known[cpu] = ++rings->read[cpu];
	rings->times[cpu] = head->time;
	*sample = (struct streamed){head->time,	  head->address,  head->latency,
				    head->period, head->physical, head + 1};
}

/* A ring of which all samples have been taken has no turn until `before` is another time: it gets none that
 * are older. */
bool rings_next(struct rings *rings, __u64 before, struct streamed *sample, struct ring_loss *loss)
{
	bool taken = false;

	if (before != rings->before || !rings->nr_turns)
		begin_turns(rings, before);
	while (rings->nr_turns && !taken) {
		int cpu = rings->turns->cpu;
		__u64 at = rings->read[cpu];

		copy_next(rings, cpu);
		skip_overwritten(rings, cpu);
		taken = rings->read[cpu] == at; /* or it was overwritten while it was copied */
		if (taken)
			take_copied(rings, cpu, sample, loss);
		change_turn(rings);
	}
	return taken;
}
