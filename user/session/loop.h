/* SPDX-License-Identifier: GPL-2.0-only */
/* The event loop. It calls functions when descriptors become ready and when deadlines pass. Each source is
 * registered by its user; there is no central list. */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

struct loop;
struct source;

/* The functions of a source; each registration makes one source. `context` is passed to them. The events are
 * poll(2)'s. */
typedef void (*ready_fn)(void *context, short events);
typedef void (*due_fn)(void *context);

/* Returns NULL on failure, with errno set. */
struct loop *loop_open(void);
void loop_close(struct loop *loop);

/*
 * Calls `ready` whenever the descriptor has one of the events; errors and hangups are always included. A
 * descriptor that epoll(7) does not support (a regular file) is accepted, but never ready. If epoll_ctl(2)
 * fails for another reason (its limit of watches, memory, a filter of system calls), the descriptor is polled
 * 50 times a second. The caller owns the descriptor, and must remove the source before closing it.
 */
struct source *loop_watch(struct loop *loop, int fd, short events, ready_fn ready, void *context);

/* Changes the events that are waited for; 0: only errors and hangups. */
void loop_listen(struct source *source, short events);

/*
 * loop_at() calls `due` once, at `ns` of CLOCK_MONOTONIC. loop_every() calls it every `period` ns, first at
 * `since` plus a period. Deadlines are exactly a period apart: a late call does not delay the next, and if
 * several deadlines were missed, there is one call for all of them. If several periodic sources are due, the
 * one that is latest in terms of its period is called first. A single deadline is called after those that
 * were due before it, and before all others.
 */
struct source *loop_at(struct loop *loop, __u64 ns, due_fn due, void *context);
struct source *loop_every(struct loop *loop, __u64 since, __u64 period, due_fn due, void *context);

/* Changes the period of a loop_every() source. The next call is one new period from now, unless the period is
 * the same. */
void loop_pace(struct source *source, __u64 period);

/* Removes a source and sets *source to NULL; does nothing if it is NULL. May be called from any source's
 * function. */
void loop_remove(struct loop *loop, struct source **source);

/* Waits and calls the functions of sources until loop_stop(). Ready descriptors come before each deadline.
 * Returns 0, or -errno if waiting failed. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
