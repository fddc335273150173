/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of events, gathered into as few groups as fit the counters: each group is then counted at
 * once, and no event twice in one. Pure, but for what the event parser asks of the host.
 */
#ifndef NHMTAP_GROUPS_H
#define NHMTAP_GROUPS_H

#include "event/event.h"
#include "host/host.h"
#include "refusal.h"

struct groups {
	struct group {
		char **names;
		size_t nr;
		bool apart; /* they do not fit the counters at once: each event is on its own */
	} * list;
	size_t nr;
};

/* Adds names that belong together to the first group that has room for them, or to a new one.
 * Returns the group's place, or -1 with the refusal. */
int groups_add(struct groups *groups, char *const *names, size_t nr, struct host *host,
	       struct refusal *refusal);

/* All of them as a list for events_parse(): "{A,B},C". The caller frees it. */
char *groups_text(const struct groups *groups);

/* Which event of that list is this name of this group, from 0. */
size_t groups_place(const struct groups *groups, size_t group, const char *name);

void groups_release(struct groups *groups);

#endif
