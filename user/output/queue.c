// SPDX-License-Identifier: GPL-2.0-only
#include "output/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* When the queue becomes empty, a buffer larger than this is freed. */
#define ROOM_KEPT (1UL << 20)

void queue_release(struct queue *queue)
{
	free(queue->bytes);
	free(queue->ends);
	*queue = (struct queue){0};
}

/* Moves the bytes that wait to the front of the buffer. */
static void compact(struct queue *queue)
{
	size_t gone = queue->first;

	memmove(queue->bytes, queue->bytes + gone, queue->used - gone);
	for (size_t i = 0; i < queue->nr; i++)
		queue->ends[i] -= gone;
	queue->first = 0;
	queue->done -= gone;
	queue->used -= gone;
}

static void make_room(struct queue *queue, size_t size)
{
	if (queue->used + size > queue->room && queue->first > queue->used / 2)
		compact(queue);
	queue->bytes = xfit(queue->bytes, queue->used + size, &queue->room, 1);
}

static void end_record(struct queue *queue, size_t used)
{
	queue->ends = xroom(queue->ends, queue->nr, &queue->ends_room, sizeof(*queue->ends));
	queue->used = used;
	queue->ends[queue->nr++] = queue->used;
}

void queue_add(struct queue *queue, const char *text, size_t size)
{
	make_room(queue, size);
	memcpy(queue->bytes + queue->used, text, size);
	end_record(queue, queue->used + size);
}

struct compact queue_lend(struct queue *queue, size_t size)
{
	make_room(queue, size);
	return (struct compact){queue->bytes, queue->used, queue->room};
}

void queue_take_unchanged(struct queue *queue, const struct compact *lent)
{
	queue->bytes = lent->text;
	queue->room = lent->room;
}

void queue_take(struct queue *queue, const struct compact *lent)
{
	queue_take_unchanged(queue, lent);
	end_record(queue, lent->used);
}

void queue_advance(struct queue *queue, size_t size)
{
	size_t whole = 0;

	queue->done += size;
	if (queue->done == queue->used) {
		queue_clear(queue);
		return;
	}
	while (queue->ends[whole] <= queue->done)
		whole++;
	if (!whole)
		return;
	queue->first = queue->ends[whole - 1];
	queue->nr -= whole;
	memmove(queue->ends, queue->ends + whole, queue->nr * sizeof(*queue->ends));
}

void queue_rewind(struct queue *queue)
{
	queue->done = queue->first;
}

void queue_clear(struct queue *queue)
{
	if (queue->room > ROOM_KEPT)
		queue_release(queue);
	queue->first = queue->done = queue->used = queue->nr = 0;
}
