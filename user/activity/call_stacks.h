/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks as a key of sampling activities: -g, --by stack, and formats that need stacks. */
#pragma once

#include "activity/activity.h"
#include "naming/codes.h"

/* All details of a frame, for outputs that can show them. */
#define FRAME_DETAIL (CODE_PLACE | CODE_SYMBOL | CODE_LINE)

/* Sets options->call_graph if stacks are wanted; `stack` is then added to the keys that were asked for.
 * Returns 0, or -1 with the refusal of stack options that were given without stacks. */
int call_stacks_choose(struct activity *activity, struct refusal *refusal);

/* The details by which frames are distinguished: enum code_detail. */
unsigned int call_stacks_detail(const struct activity *activity);
