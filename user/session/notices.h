/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's notices of CPUs that go offline and come online, for all activities of a session. */
#pragma once

#include <stdbool.h>

#include "base/cpus.h"
#include "session/loop.h"

struct listener;

struct notices {
	struct loop *loop;
	int socket; /* -1: not opened, or not available: the kernel sends notices only to network namespaces
		       owned by the initial user namespace */
	int online; /* file with the list of online CPUs; -1: not opened */
	struct source *source;
	struct listener *listeners;
};

/* The initial value. Nothing is opened before notices_listen(). */
#define NOTICES_CLOSED                                                                                       \
	{                                                                                                    \
		.socket = -1, .online = -1                                                                   \
	}

/* `gone`: CPUs that went offline since the last call, by the kernel's notices; they may be online again. */
typedef void (*notice_fn)(void *context, const struct cpus *gone);

/* Calls `follow` for notices about CPUs, until notices_leave() with the same context. `root`: host->root. */
void notices_listen(struct notices *notices, struct loop *loop, const char *root, notice_fn follow,
		    void *context);
void notices_leave(struct notices *notices, void *context);

/* Reads pending notices now instead of by the loop. If there are any, all listeners are called; otherwise
 * only the listener with this context is. */
void notices_take(struct notices *notices, void *context);

/* Reads which CPUs are online now. Returns false on failure. */
bool notices_online(const struct notices *notices, struct cpus *online);
