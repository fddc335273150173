/* SPDX-License-Identifier: GPL-2.0-only */
/* The records of a stream in memory, as their text: what a live view shows can be shown again as it was. */
#pragma once

#include <stddef.h>
#include <jansson.h>
#include <linux/types.h>

/* Text of records that is kept; the oldest records go. */
#define TAPE_BYTES (256u << 20)

struct taped {
	char *line;
	size_t size;
	__u64 until_ns; /* end of the interval that it is of, since 1970; 0: it is of none */
};

/* Starts as {0}. Records are numbered from 0 in the order of the stream. */
struct tape {
	struct taped *records;
	size_t first, end, room; /* records from `first` to before `end` are there */
	size_t bytes;
};

/* Appends a record, of which `line` is the text. */
void tape_add(struct tape *tape, const char *line, size_t size, const json_t *record);

const struct taped *tape_at(const struct tape *tape, size_t number);

/* The record with this number, a new reference. */
json_t *tape_record(const struct tape *tape, size_t number);

/* The time that has been reached before record `number`: the last end of an interval before it; 0: none. */
__u64 tape_time(const struct tape *tape, size_t number);

/* The number behind the last record that is of an interval which ended by then. */
size_t tape_seek(const struct tape *tape, __u64 until_ns);

/* The place one interval further on or back from `number`. Intervals that end within a tenth of a second are
 * one: those of several activities. */
size_t tape_step(const struct tape *tape, size_t number, int direction);

void tape_release(struct tape *tape);
