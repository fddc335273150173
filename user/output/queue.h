/* SPDX-License-Identifier: GPL-2.0-only */
/* Records that wait to be written, as one text, with the offset at which each ends. */
#pragma once

#include <stddef.h>

#include "record/compact.h"

/* Starts as {0}. */
struct queue {
	char *bytes;
	size_t first;		 /* offset of the first record that is not completely written */
	size_t done, used, room; /* bytes that are written, that are in the buffer, and that it can hold */
	size_t *ends;		 /* offset of the end of each record, from `first` on */
	size_t nr, ends_room;
};

void queue_release(struct queue *queue);

/* Appends a complete record. The text is copied. */
void queue_add(struct queue *queue, const char *text, size_t size);

/* Lend the buffer to append a record of about this size to it, and take it back with the record, or without
 * it. Nothing else may be done with the queue meanwhile. */
struct compact queue_lend(struct queue *queue, size_t size);
void queue_take(struct queue *queue, const struct compact *lent);
void queue_take_unchanged(struct queue *queue, const struct compact *lent);

/* The bytes to be written next, and how many there are. */
static inline const char *queue_next(const struct queue *queue)
{
	return queue->bytes + queue->done;
}

static inline size_t queue_waiting(const struct queue *queue)
{
	return queue->used - queue->done;
}

/* The number of bytes that are written of a record that is not complete yet; 0 if the last write ended with a
 * record. */
static inline size_t queue_torn(const struct queue *queue)
{
	return queue->done - queue->first;
}

/* All bytes of the records that are not completely written, and how many there are. */
static inline const char *queue_unwritten(const struct queue *queue)
{
	return queue->bytes + queue->first;
}

static inline size_t queue_left(const struct queue *queue)
{
	return queue->used - queue->first;
}

/* Marks this many more bytes as written. */
void queue_advance(struct queue *queue, size_t size);

/* A record that is partly written is written again from its beginning. */
void queue_rewind(struct queue *queue);

/* Drops all records that wait. */
void queue_clear(struct queue *queue);
