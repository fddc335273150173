/* SPDX-License-Identifier: GPL-2.0-only */
/* The process that reads what measured processes publish about themselves (output/process_context.h). */
#pragma once

#include <linux/types.h>
#include <sys/types.h>

#include "output/process_context.h"

/* A packet that it sends of a process. */
struct told_context {
	pid_t pid;
	__u64 published_ns;			   /* 0: it publishes nothing any more */
	char attributes[PROCESS_CONTEXT_MOST + 1]; /* an object */
};

/* Follows the processes `context`, which ends in 0, and their children (none: all processes), and sends what
 * they publish as it changes, until the other end of the socket is closed. For apart_start(). */
void context_reader_serve(int socket, const void *context);
