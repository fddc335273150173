/* SPDX-License-Identifier: GPL-2.0-only */
/* Records that wait to be written, as one text, with the places where each ends. */
#ifndef NHMTAP_QUEUE_H
#define NHMTAP_QUEUE_H

#include <stddef.h>

/* Starts as {0}. */
struct queue {
	char *bytes;
	size_t first;		 /* where the first record begins that is not written whole */
	size_t done, used, room; /* what is written of the bytes, and what there is of them */
	size_t *ends;		 /* of the records from the first on */
	size_t nr, ends_room;
};

void queue_release(struct queue *queue);

/* Adds a whole record. */
void queue_add(struct queue *queue, const char *text, size_t size);

/* What is to be written next, and how much of it there is. */
static inline const char *queue_next(const struct queue *queue)
{
	return queue->bytes + queue->done;
}

static inline size_t queue_waiting(const struct queue *queue)
{
	return queue->used - queue->done;
}

/* How much is written of a record that is not written whole. */
static inline size_t queue_torn(const struct queue *queue)
{
	return queue->done - queue->first;
}

/* Marks this many more bytes as written. */
void queue_advance(struct queue *queue, size_t size);

/* A record that is not written whole is to be written again from its beginning. */
void queue_rewind(struct queue *queue);

/* Forgets all that waits. */
void queue_clear(struct queue *queue);

#endif
