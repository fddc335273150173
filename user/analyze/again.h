/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs nhmtap once more, with another of its commands: the target of an activity is sampled after it was
 * counted. What samples is that command, as the user would run it. */
#pragma once

#include <jansson.h>

#include "activity/activity.h"
#include "base/arguments.h"

/* Runs a command of nhmtap, with its options, on the activity's target, and waits for its end. Returns the
 * list of its records, a new reference; or NULL with the reason in `why`. A signal that ends the session is
 * passed on, and noted in session->ended_by. */
json_t *again_run(struct activity *activity, const struct arguments *command, char *why, size_t size);
