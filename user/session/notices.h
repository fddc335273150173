/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's notices of CPUs that go offline and come online, for all activities of a session. */
#ifndef NHMTAP_NOTICES_H
#define NHMTAP_NOTICES_H

#include <stdbool.h>

#include "cpus.h"
#include "session/loop.h"

struct listener;

struct notices {
	struct loop *loop;
	int socket; /* -1: not opened, or not to be had here: the kernel tells only those who are in a network
		     * namespace of its own user namespace */
	int online; /* the list of CPUs that are; -1: not opened */
	struct source *source;
	struct listener *listeners;
};

/* Nothing is opened before somebody listens. Starts as this. */
#define NOTICES_CLOSED                                                                                       \
	{                                                                                                    \
		.socket = -1, .online = -1                                                                   \
	}

/* `gone`: CPUs that the kernel has said to go offline, though they may be back. */
typedef void (*notice_fn)(void *context, const struct cpus *gone);

/* Calls `follow` when there are notices of CPUs (root: host->root), up to notices_leave() with the same
 * context. */
void notices_listen(struct notices *notices, struct loop *loop, const char *root, notice_fn follow,
		    void *context);
void notices_leave(struct notices *notices, void *context);

/* Takes notices now, before the loop comes to them. Calls the functions of all where there are any, and that
 * of this context always. */
void notices_take(struct notices *notices, void *context);

/* Reads the CPUs that are online now. Returns false on failure. */
bool notices_online(const struct notices *notices, struct cpus *online);

#endif
