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
	struct span *heap;
	size_t active, heap_room;
	size_t left;		   /* ranges that have not begun, `next` included */
	struct span next, follows; /* if so many are left */
};

static bool above(const struct span *a, const struct span *b)
{
	return a->order != b->order ? a->order > b->order : a->low > b->low;
}

static void swap(struct span *heap, size_t a, size_t b)
{
	struct span kept = heap[a];

	heap[a] = heap[b];
	heap[b] = kept;
}

static void push(struct sweep *sweep, const struct span *span)
{
	size_t at = sweep->active++;

	sweep->heap = xroom(sweep->heap, at, &sweep->heap_room, sizeof(*sweep->heap));
	sweep->heap[at] = *span;
	for (; at && above(&sweep->heap[at], &sweep->heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(sweep->heap, at, (at - 1) / 2);
}

static void pop(struct sweep *sweep)
{
	struct span *heap = sweep->heap;
	size_t nr = --sweep->active, at = 0;

	heap[0] = heap[nr];
	for (size_t child; (child = 2 * at + 1) < nr; at = child) {
		if (child + 1 < nr && above(&heap[child + 1], &heap[child]))
			child++;
		if (!above(&heap[child], &heap[at]))
			return;
		swap(heap, at, child);
	}
}

/* Begins a piece at `low`. */
static inline void begin_piece(struct sweep *sweep, __u64 low, __u32 what)
{
	struct spans *spans = sweep->spans;

	if (spans->nr && spans->list[spans->nr - 1].low == low)
		spans->nr--;
	if (spans->nr ? spans->list[spans->nr - 1].what == what : what == SPANS_NONE)
		return;
	if (spans->nr == sweep->room)
		spans->list = xroom(spans->list, spans->nr, &sweep->room, sizeof(*spans->list));
	spans->list[spans->nr++] = (struct piece){low, what};
}

/* Whether the next range overlaps none, as nearly all do: the heap would cost most of the time. */
static bool is_alone(const struct sweep *sweep)
{
	const struct span *next = &sweep->next;

	return !sweep->active && sweep->left && next->low < next->high &&
	       (sweep->left == 1 || next->high <= sweep->follows.low);
}

static void step_on(struct sweep *sweep, size_t nr, struct span (*span_at)(const void *of, size_t i),
		    const void *of)
{
	sweep->next = sweep->follows;
	if (--sweep->left > 1)
		sweep->follows = span_at(of, nr - sweep->left + 1);
}

void spans_of_ordered(struct spans *spans, size_t nr, struct span (*span_at)(const void *of, size_t i),
		      const void *of)
{
	struct sweep sweep = {.spans = spans, .left = nr};

	/* Between most ranges is no gap. */
	sweep.room = nr + nr / 4 + 1;
	*spans = (struct spans){.list = xmalloc(sweep.room * sizeof(*spans->list))};
	if (nr)
		sweep.next = span_at(of, 0);
	if (nr > 1)
		sweep.follows = span_at(of, 1);
	while (sweep.left || sweep.active) {
		__u64 low;

		if (is_alone(&sweep)) {
			begin_piece(&sweep, sweep.next.low, sweep.next.what);
			if (sweep.left == 1 || sweep.next.high < sweep.follows.low)
				begin_piece(&sweep, sweep.next.high, SPANS_NONE);
			step_on(&sweep, nr, span_at, of);
			continue;
		}
		if (sweep.active && (!sweep.left || sweep.heap[0].high <= sweep.next.low)) {
			low = sweep.heap[0].high;
		} else {
			low = sweep.next.low;
			while (sweep.left && sweep.next.low == low) {
				if (sweep.next.high > low)
					push(&sweep, &sweep.next);
				step_on(&sweep, nr, span_at, of);
			}
		}
		while (sweep.active && sweep.heap[0].high <= low)
			pop(&sweep);
		begin_piece(&sweep, low, sweep.active ? sweep.heap[0].what : SPANS_NONE);
	}
	free(sweep.heap);
	spans->list = xrealloc(spans->list, spans->nr * sizeof(*spans->list));
}

static struct span span_of_list(const void *of, size_t i)
{
	return ((const struct span *)of)[i];
}

void spans_make(struct spans *spans, struct span *list, size_t nr)
{
	order_by_address(list, nr, sizeof(*list));
	spans_of_ordered(spans, nr, span_of_list, list);
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
