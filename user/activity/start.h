/* SPDX-License-Identifier: GPL-2.0-only */
/* The start record, with which a stream begins: who measures what, where, and with which events exactly. */
#pragma once

#include <jansson.h>

#include "activity/activity.h"

/* Makes a start record with the members that all have, of an activity or not. A new reference. */
json_t *start_base(struct host *host, const char *command);

/* Adds the members of an activity: its target and its events. */
void start_put_activity(json_t *start, struct activity *activity);

/* The emulated machine that this is, as host.emulated of the start record. NULL: it is none, or another CPU
 * is only looked up. A new reference. */
json_t *emulated_value(const struct host *host);

/* An event with its full encoding, as the start record and `explain` show it. A new reference. */
json_t *event_value(const struct event *event, const struct host *host);
