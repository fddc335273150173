// SPDX-License-Identifier: GPL-2.0-only
/* Walks lists that fit into different levels of the caches. Each element has a line of its own, and the next
 * one is far away, so that each step waits for one load. */
#include <stdlib.h>

#define LINE 64
#define STEP 1021 /* lines from an element to the next; prime, so that every element is reached */

struct element {
	struct element *next;
	char rest[LINE - sizeof(struct element *)];
};

static struct element *list_of(size_t kib)
{
	size_t nr = kib * 1024 / LINE;
	struct element *list = aligned_alloc(LINE, nr * LINE);

	if (!list)
		exit(1);
	for (size_t i = 0; i < nr; i++)
		list[i].next = &list[(i + STEP) % nr];
	return list;
}

#define WALK(name, steps)                                                                                    \
	static struct element *name(struct element *at)                                                      \
	{                                                                                                    \
		for (int i = 0; i < (steps); i++)                                                            \
			at = at->next;                                                                       \
		return at;                                                                                   \
	}

WALK(in_second_level, 20000)
WALK(in_last_level, 60000)
WALK(in_memory, 40000)

int main(void)
{
	struct element *second = list_of(128), *last = list_of(1024), *memory = list_of(32768);

	/* A result that is used, so that nothing is left out. */
	return in_second_level(second) == in_last_level(last) || !in_memory(memory);
}
