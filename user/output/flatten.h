/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns a record into rows without nested values: one row for each entry, or one for the record itself. */
#pragma once

#include <stdbool.h>
#include <time.h>
#include <jansson.h>

#include "record/compact.h"

struct calls;

struct row {
	json_t *keys;	     /* the key of the series: {name: text, number or boolean} */
	json_t *values;	     /* other measured values */
	const json_t *value; /* the value that can be summed up; NULL if there is none */
	const json_t *from;  /* the entry, `rest` or record that it was made of */
};

/*
 * Calls `take` for each row, which is valid only during the call. `calls` has the frames of the stacks; a
 * row's symbol is the innermost function. With `stacks` each stack is also added as one text; otherwise it is
 * left out. Returns 0, or the first result of `take` that is not 0.
 */
int flatten(const json_t *record, const struct calls *calls, bool stacks,
	    int (*take)(void *context, const struct row *row), void *context);

/* An entry's row as text. Its members are JSON, each after a comma. */
struct row_text {
	struct compact keys;
	struct compact series; /* the keys in another form: the same for the same keys alone */
	const char *value;     /* the value that can be summed up; NULL if there is none */
	size_t value_length;
	struct compact values;
};

/* The same with stacks, but gives rows as text where entries are text (record/rows.h) and their members need
 * no more than to be put in another order. A row's series, keys and values are those that flatten() would
 * give. */
int flatten_texts(const json_t *record, const struct calls *calls,
		  int (*take_text)(void *context, const struct row_text *row),
		  int (*take)(void *context, const struct row *row), void *context);

/* Adds a key to the text of a series. */
void series_add(struct compact *series, const char *name, const json_t *value);

/* Calls `take` as flatten() does, for each cause for which samples or records are lost: a row without a
 * value, so that sums don't include what was lost, but with `missed`. A sampled event that never got a
 * counter while its target ran has a row without a value, too, with `status` and `why`. */
int flatten_losses(const json_t *record, int (*take)(void *context, const struct row *row), void *context);

/* The name that a row has for a member of its record's code `name`: "code_offset", "from_symbol". Where a row
 * has only one code, its names `symbol` and `module` have no prefix. The name is `member`, or in the buffer,
 * which has CODE_MEMBER_ROOM bytes. */
#define CODE_MEMBER_ROOM 80
const char *flatten_code_member(const char *name, const char *member, char *buffer);

/* What all rows of a run have. The start record is held; the others are members of it, NULL where it lacks
 * them. */
struct flattened_run {
	json_t *start;
	json_t *host, *model, *container;
};

/* Takes the members of a start record in place of those of the one before, if it is another. The owner
 * releases it with NULL. */
void flatten_run(struct flattened_run *run, json_t *start);

/* When the rows of a record were: at the end of its interval, when the sample was taken, or else now. */
struct flattened_time {
	struct timespec at;
	bool interval; /* the record has one */
	double interval_ms;
};
struct flattened_time flatten_time(const json_t *record);
