/* SPDX-License-Identifier: GPL-2.0-only */
/* The record that a stream begins with: who measures what, where, and with which events exactly. */
#ifndef NHMTAP_START_H
#define NHMTAP_START_H

#include <jansson.h>

#include "run/run.h"

/* What every start record has, of a run or not. A new reference. */
json_t *start_base(const struct host *host, const char *command);

/* That of a run. A new reference. */
json_t *start_record(const struct run *run, const char *command);

/* An event with its full encoding, as the start record and `explain` show it. A new reference. */
json_t *event_value(const struct event *event, const struct host *host);

/* The CPU and kernel. A new reference. */
json_t *host_value(const struct host *host);

#endif
