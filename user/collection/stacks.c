// SPDX-License-Identifier: GPL-2.0-only
#include "collection/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "interned.h"
#include "shared.h"

struct stacks {
	struct bpf_map *map;
	char *areas; /* mapped: one a CPU */
	int nr_cpus;
	unsigned int frames; /* at most, of a stack */
	struct interned hashes; /* of the stacks that were seen, by number */
	const struct stored_stack **stored; /* by number */
	size_t room;
};

struct stacks *stacks_prepare(struct bpf_object *object, int nr_cpus, unsigned int frames)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, "stack_areas");
	struct stacks *stacks;

	if (!map)
		return NULL;
	/* A program that takes no stacks has no code that would need it. */
	bpf_map__set_autocreate(map, frames);
	if (!frames)
		return NULL;
	bpf_map__set_max_entries(map, nr_cpus);
	stacks = calloc(1, sizeof(*stacks));
	stacks->map = map;
	stacks->frames = frames;
	stacks->nr_cpus = nr_cpus;
	interned_init(&stacks->hashes, sizeof(__u64));
	return stacks;
}

/* Elements of an array lie at multiples of 8 bytes. */
static size_t area_size(const struct stacks *stacks)
{
	return (bpf_map__value_size(stacks->map) + 7) & ~7UL;
}

int stacks_map(struct stacks *stacks)
{
	stacks->areas = mmap(NULL, area_size(stacks) * stacks->nr_cpus, PROT_READ, MAP_SHARED,
			     bpf_map__fd(stacks->map), 0);
	if (stacks->areas != MAP_FAILED)
		return 0;
	stacks->areas = NULL;
	return -errno;
}

void stacks_close(struct stacks *stacks)
{
	if (!stacks)
		return;
	if (stacks->areas)
		munmap(stacks->areas, area_size(stacks) * stacks->nr_cpus);
	interned_release(&stacks->hashes);
	free(stacks->stored);
	free(stacks);
}

__u32 stacks_number(struct stacks *stacks, int cpu, __u32 id)
{
	const char *words = stacks->areas + cpu * area_size(stacks) + sizeof(struct stacks_head);
	const struct stored_stack *stored = (const void *)(words + (id - STACK_FIRST) * sizeof(__u64));
	__u32 number;

	if (id < STACK_FIRST)
		return id;
	number = interned_number(&stacks->hashes, &stored->hash);
	if (stacks->hashes.nr > stacks->room) {
		stacks->room = 2 * stacks->hashes.nr;
		stacks->stored = realloc(stacks->stored, stacks->room * sizeof(*stacks->stored));
	}
	stacks->stored[number] = stored;
	return number + STACK_FIRST;
}

struct stack stacks_at(const struct stacks *stacks, __u32 number)
{
	const struct stored_stack *stored = stacks->stored[number - STACK_FIRST];

	return (struct stack){stored->frames, stored->pid, stored->kernel_frames, stored->user_frames,
			      stored->kernel_frames + stored->user_frames >= stacks->frames};
}
