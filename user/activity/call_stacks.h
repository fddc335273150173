/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks as a key of what samples: -g, --by stack, and formats that are made of stacks. */
#ifndef NHMTAP_CALL_STACKS_H
#define NHMTAP_CALL_STACKS_H

#include <jansson.h>

#include "activity/activity.h"
#include "collection/aggregation.h"
#include "naming/codes.h"

/* All details of a frame, for outputs that have room for them. */
#define FRAME_DETAIL (CODE_PLACE | CODE_SYMBOL | CODE_LINE)

/*
 * Sets options->call_graph to whether stacks are wanted; keys that were asked for are then joined by stack.
 * Returns 0, or -1 with the refusal of options that are about stacks where none are wanted.
 */
int call_stacks_choose(struct activity *activity, struct refusal *refusal);

/* What frames are distinguished by: enum code_detail. */
unsigned int call_stacks_detail(const struct activity *activity);

/* Puts entries with stacks into a record: a put_fn. */
void call_stacks_put(const struct activity *activity, json_t *record, const struct layout *layout,
		     struct reading *reading);

#endif
