/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes for work that may never end: what waits for a file system that does not answer can't be
 * interrupted, not even by SIGKILL, and a process does not end before all its threads do. So such work is
 * given to a process of its own, which is left alone if it does not answer.
 *
 * Any thread may call these functions.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <linux/types.h>

struct apart {
	pid_t pid;
	int socket;   /* the caller's end: packets. If it is closed, the process should end */
	__u64 cpu_ns; /* as last seen */
	struct apart *next;
};

/* Starts a process that runs serve(socket, context) with the rights of the calling thread, and then ends. It
 * has no other descriptors than its socket and, as APART_KEPT, a copy of `kept` (-1: none), so nobody waits
 * for the end of a pipe because it is stuck. No signal reaches it. `name` is shown by ps(1). Returns whether
 * there is a process. */
#define APART_KEPT 1
bool apart_start(struct apart *apart, const char *name, void (*serve)(int socket, const void *context),
		 const void *context, int kept);

/* In such a process that keeps no other descriptor: closes all that it has opened since. */
void apart_close_opened(void);

/* Waits for a packet until `deadline` (CLOCK_MONOTONIC, ns). Returns 0; ETIMEDOUT; ECHILD if the process has
 * ended, or has sent a packet of another size. *fd: see packet_receive(). */
int apart_receive(const struct apart *apart, void *packet, size_t size, int *fd, __u64 deadline);

/* Starts such a process for one packet, waits for it for `wait_ns`, and lets go of the process. Returns as
 * apart_receive() does; EAGAIN if there can be no process. */
int apart_once(const char *name, void (*serve)(int socket, const void *context), const void *context,
	       int kept, void *packet, size_t size, int *fd, __u64 wait_ns);

/* Lets go of a process, which ends now or once it is no longer stuck. Does nothing if there is none. */
void apart_leave(struct apart *apart);

/* CPU time of all these processes so far, and how many were started. */
__u64 apart_cpu_ns(void);
__u64 apart_started(void);
