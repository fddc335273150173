// SPDX-License-Identifier: GPL-2.0-only
#include "naming/spans.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "naming/order.h"

/* A sweep over the ranges from low to high addresses. Ranges that have begun are in a heap, the one that
 * applies on top. */
struct sweep {
	struct spans *spans;
	size_t room;
	const struct span **heap;
	size_t active;
};

static bool above(const struct span *a, const struct span *b)
{
	return a->order != b->order ? a->order > b->order : a->low > b->low;
}

static void swap(const struct span **heap, size_t a, size_t b)
{
	const struct span *kept = heap[a];

	heap[a] = heap[b];
	heap[b] = kept;
}

static void push(struct sweep *sweep, const struct span *span)
{
	const struct span **heap = sweep->heap;
	size_t at = sweep->active++;

	heap[at] = span;
	for (; at && above(heap[at], heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(heap, at, (at - 1) / 2);
}

static void pop(struct sweep *sweep)
{
	const struct span **heap = sweep->heap;
	size_t nr = --sweep->active, at = 0;

	heap[0] = heap[nr];
	for (size_t child; (child = 2 * at + 1) < nr; at = child) {
		if (child + 1 < nr && above(heap[child + 1], heap[child]))
			child++;
		if (!above(heap[child], heap[at]))
			return;
		swap(heap, at, child);
	}
}

/* Begins a piece at `low`, with the range that is now on top of the heap. */
static void begin_piece(struct sweep *sweep, __u64 low)
{
	struct spans *spans = sweep->spans;
	__u32 what = sweep->active ? sweep->heap[0]->what : SPANS_NONE;

	if (spans->nr && spans->list[spans->nr - 1].low == low)
		spans->nr--;
	if (spans->nr ? spans->list[spans->nr - 1].what == what : what == SPANS_NONE)
		return;
	spans->list = xroom(spans->list, spans->nr, &sweep->room, sizeof(*spans->list));
	spans->list[spans->nr++] = (struct piece){low, what};
}

void spans_make(struct spans *spans, struct span *list, size_t nr)
{
	struct sweep sweep = {.spans = spans, .heap = xmalloc((nr + 1) * sizeof(*sweep.heap))};
	size_t next = 0;

	*spans = (struct spans){0};
	order_by_address(list, nr, sizeof(*list));
	while (next < nr || sweep.active) {
		__u64 low;

		if (sweep.active && (next == nr || sweep.heap[0]->high <= list[next].low)) {
			low = sweep.heap[0]->high;
		} else {
			low = list[next].low;
			for (; next < nr && list[next].low == low; next++)
				if (list[next].high > low)
					push(&sweep, &list[next]);
		}
		while (sweep.active && sweep.heap[0]->high <= low)
			pop(&sweep);
		begin_piece(&sweep, low);
	}
	free(sweep.heap);
	if (spans->nr)
		spans->list = xrealloc(spans->list, spans->nr * sizeof(*spans->list));
}

__u32 spans_find(const struct spans *spans, __u64 address)
{
	size_t first = 0, behind = spans->nr;

	while (first < behind) {
		size_t middle = first + (behind - first) / 2;

		if (spans->list[middle].low <= address)
			first = middle + 1;
		else
			behind = middle;
	}
	return first ? spans->list[first - 1].what : SPANS_NONE;
}

void spans_release(struct spans *spans)
{
	free(spans->list);
	*spans = (struct spans){0};
}

size_t spans_bytes(const struct spans *spans)
{
	return spans->nr * sizeof(*spans->list);
}
