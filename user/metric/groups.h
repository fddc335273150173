/* SPDX-License-Identifier: GPL-2.0-only */
/* Groups of event names, as few as possible, each of which fits the counters. A group is counted at the same
 * time, and has no event twice. Pure, except for what the event parser asks of the host. */
#pragma once

#include "base/refusal.h"
#include "event/event.h"
#include "host/host.h"

struct groups {
	struct group {
		char **names;
		size_t nr;
		bool apart; /* they do not fit the counters together: each event is on its own */
	} * list;
	size_t nr;
};

/* Whether names fit the counters together: 1 or 0, or -1 with the refusal of one of them. */
int groups_fit(char *const *names, size_t nr, struct host *host, struct refusal *refusal);

/* Adds names that belong together to the first group that has room for them, or to a new one. Returns the
 * group's index, or -1 with the refusal. */
int groups_add(struct groups *groups, char *const *names, size_t nr, struct host *host,
	       struct refusal *refusal);

/* Writes all groups as a list for events_parse(): "{A,B},C". The caller frees it. */
char *groups_text(const struct groups *groups);

/* The index, in that list, of this name of this group. */
size_t groups_place(const struct groups *groups, size_t group, const char *name);

void groups_release(struct groups *groups);
