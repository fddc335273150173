/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event loop: calls back when descriptors become ready and when deadlines pass. Each source is
 * registered by its user; there is no central list.
 */
#ifndef NHMTAP_LOOP_H
#define NHMTAP_LOOP_H

#include <stdbool.h>
#include <linux/types.h>

struct loop;
struct source;

/* One source a registration; `context` is handed back. The events are poll(2)'s. */
typedef void (*ready_fn)(void *context, short events);
typedef void (*due_fn)(void *context);

/* Returns NULL on failure, with errno set. */
struct loop *loop_open(void);
void loop_close(struct loop *loop);

/*
 * Calls `ready` whenever the descriptor has one of the events; errors and hangups always count. A descriptor
 * that can't be waited for (a regular file) is accepted, and never ready. One that epoll_ctl(2) refuses for
 * another reason (its limit of watches, memory) is polled 50 times a second. The descriptor stays the
 * caller's: it is to be removed before it is closed.
 */
struct source *loop_watch(struct loop *loop, int fd, short events, ready_fn ready, void *context);

/* Changes what is waited for; 0: only errors and hangups. */
void loop_listen(struct source *source, short events);

/*
 * Calls `due` once, at `ns` of CLOCK_MONOTONIC, or every `period` ns, first a period after `since`. Deadlines
 * are a period apart however long the calls take: a late call delays none after it, and deadlines that were
 * missed meanwhile become one call. Of two at the same moment, the one that comes once is first.
 */
struct source *loop_at(struct loop *loop, __u64 ns, due_fn due, void *context);
struct source *loop_every(struct loop *loop, __u64 since, __u64 period, due_fn due, void *context);

/* Changes the period of a source of loop_every(): the next call is a period from now. */
void loop_pace(struct source *source, __u64 period);

/* Removes it. NULL is nothing. May be called from any source's function. */
void loop_remove(struct loop *loop, struct source **source);

/* Waits and calls until loop_stop(). Descriptors come before moments, and those in their order. Returns 0,
 * or -errno where the kernel does not let it wait. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
