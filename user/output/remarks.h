/* SPDX-License-Identifier: GPL-2.0-only */
/* What of a record of samples can't be trusted or is missing, in words: each format has a place for them. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "output/text.h"

struct remark {
	const char *title; /* what it is about: one or two words */
	const char *text;  /* without a full stop */
	bool serious;	   /* the numbers are wrong by more than a little */
};

typedef void (*remark_fn)(void *to, const struct remark *remark);

/* Hands over what the status of a record's event says, unless it was counted all the time and has samples. */
void remarks_of_status(const json_t *record, remark_fn take, void *to);

/* Hands over all that there is to say: the status, the samples that were lost, and how far the number of
 * expected ones is uncertain. */
void remarks_of(const json_t *record, remark_fn take, void *to);

/* Adds a line for each remark on the status, as tables have them. */
void lines_of_status(struct text *text, const json_t *record);

/* Adds a line for each event of a start record whose samples the processor takes some instructions late, if
 * they are shown by line or address: what names the right one instead. */
void lines_of_lateness(struct text *text, const json_t *start);
