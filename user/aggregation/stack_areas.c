// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/stack_areas.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/memory.h"
#include "shared.h"

struct stack_areas {
	struct bpf_map *map;
	char *mapped; /* two areas a CPU */
	int nr_cpus;
};

struct stack_areas *stack_areas_prepare(struct bpf_object *object, int nr_cpus, unsigned int frames)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, "stack_areas");
	struct stack_areas *areas;

	if (!map)
		return NULL;
	/* A program that takes no stacks does not use the map. */
	bpf_map__set_autocreate(map, frames);
	if (!frames)
		return NULL;
	bpf_map__set_max_entries(map, 2 * nr_cpus);
	areas = xcalloc(1, sizeof(*areas));
	areas->map = map;
	areas->nr_cpus = nr_cpus;
	return areas;
}

/* Elements of an array lie at multiples of 8 bytes. */
static size_t element_size(const struct bpf_map *map)
{
	return (bpf_map__value_size(map) + 7) & ~7UL;
}

size_t stack_areas_bytes(const struct bpf_object *object)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, "stack_areas");

	return map ? 2 * element_size(map) : 0;
}

static size_t mapped_size(const struct stack_areas *areas)
{
	return 2 * element_size(areas->map) * areas->nr_cpus;
}

static struct stacks_head *area(const struct stack_areas *areas, int cpu, unsigned int which)
{
	return (void *)(areas->mapped + (2 * cpu + which) * element_size(areas->map));
}

int stack_areas_map(struct stack_areas *areas)
{
	void *mapped = mmap(NULL, mapped_size(areas), PROT_READ | PROT_WRITE, MAP_SHARED,
			    bpf_map__fd(areas->map), 0);

	if (mapped == MAP_FAILED)
		return -errno;
	areas->mapped = mapped;
	/* Slots that were never used have epoch 0. */
	for (int cpu = 0; cpu < areas->nr_cpus; cpu++)
		for (unsigned int which = 0; which < 2; which++)
			area(areas, cpu, which)->epoch = 1;
	return 0;
}

void stack_areas_close(struct stack_areas *areas)
{
	if (!areas)
		return;
	if (areas->mapped)
		munmap(areas->mapped, mapped_size(areas));
	free(areas);
}

const struct stored_stack *stack_areas_at(const struct stack_areas *areas, int cpu, unsigned int which,
					  __u32 id)
{
	const __u64 *words = (const void *)(area(areas, cpu, which) + 1);

	return (const void *)(words + (id - STACK_FIRST));
}

void stack_areas_clear(struct stack_areas *areas, int cpu, unsigned int which)
{
	struct stacks_head *head = area(areas, cpu, which);

	if (head->used)
		head->epoch++;
	head->used = 0;
	head->told = 0;
}
