// SPDX-License-Identifier: GPL-2.0-only
#include "session/loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

struct source {
	struct source *next;
	struct loop *loop;
	int fd; /* -1: a deadline */
	ready_fn ready;
	__u64 at, period; /* ns; period 0: once */
	due_fn due;
	void *context;
	short polled; /* events waited for, if epoll refuses the descriptor and it is polled */
	bool removed; /* freed after all current calls have returned */
};

struct loop {
	int epoll;
	struct source *sources;
	bool stopped, calling;
	bool coarse; /* epoll_pwait2(2) is refused */
};

struct loop *loop_open(void)
{
	struct loop *loop = xcalloc(1, sizeof(*loop));

	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll >= 0)
		return loop;
	free(loop);
	return NULL;
}

static void sweep(struct loop *loop)
{
	for (struct source **at = &loop->sources; *at;) {
		struct source *source = *at;

		if (!source->removed) {
			at = &source->next;
			continue;
		}
		*at = source->next;
		free(source);
	}
}

void loop_close(struct loop *loop)
{
	if (!loop)
		return;
	for (struct source *source = loop->sources; source; source = source->next)
		source->removed = true;
	sweep(loop);
	close(loop->epoll);
	free(loop);
}

static struct source *add_source(struct loop *loop, const struct source *like)
{
	struct source *source = xmalloc(sizeof(*source));

	*source = *like;
	source->loop = loop;
	source->next = loop->sources;
	return loop->sources = source;
}

/* The event for epoll. poll(2) and epoll(7) use the same bits for the events used here. */
static struct epoll_event asked(struct source *source, short events)
{
	return (struct epoll_event){.events = events, .data.ptr = source};
}

static void poll_source(void *context)
{
	struct source *source = context;
	struct pollfd one = {.fd = source->fd, .events = source->polled};

	if (poll(&one, 1, 0) > 0)
		source->ready(source->context, one.revents);
}

/* Whether nobody needs to wait for this descriptor. epoll refuses such ones with EPERM, as a filter of system
 * calls does with all. */
static bool is_always_ready(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return false;
	return S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode) || (S_ISCHR(stat.st_mode) && !isatty(fd));
}

/* Period of polling a descriptor that epoll refuses. */
#define LOOK_NS 20000000

struct source *loop_watch(struct loop *loop, int fd, short events, ready_fn ready, void *context)
{
	struct source *source =
		add_source(loop, &(struct source){.fd = fd, .ready = ready, .context = context});
	struct epoll_event event = asked(source, events);

	if (!epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event))
		return source;
	if (errno == EPERM && is_always_ready(fd))
		return source;
	source->polled = events;
	source->period = LOOK_NS;
	source->at = clock_ns(CLOCK_MONOTONIC) + LOOK_NS;
	source->due = poll_source;
	return source;
}

void loop_listen(struct source *source, short events)
{
	struct epoll_event event = asked(source, events);

	source->polled = events;
	epoll_ctl(source->loop->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

struct source *loop_at(struct loop *loop, __u64 ns, due_fn due, void *context)
{
	return add_source(loop, &(struct source){.fd = -1, .at = ns, .due = due, .context = context});
}

struct source *loop_every(struct loop *loop, __u64 since, __u64 period, due_fn due, void *context)
{
	return add_source(
		loop,
		&(struct source){
			.fd = -1, .at = since + period, .period = period, .due = due, .context = context});
}

void loop_pace(struct source *source, __u64 period)
{
	if (source->period == period)
		return;
	source->period = period;
	source->at = clock_ns(CLOCK_MONOTONIC) + period;
}

void loop_remove(struct loop *loop, struct source **source)
{
	if (!*source)
		return;
	if ((*source)->fd >= 0)
		epoll_ctl(loop->epoll, EPOLL_CTL_DEL, (*source)->fd, NULL);
	(*source)->removed = true;
	*source = NULL;
	if (!loop->calling)
		sweep(loop);
}

static struct source *earliest(const struct loop *loop, bool periodic)
{
	struct source *first = NULL;

	for (struct source *source = loop->sources; source; source = source->next)
		if (source->due && !source->removed && (periodic || !source->period) &&
		    (!first || source->at < first->at))
			first = source;
	return first;
}

/* How late a periodic source is, in periods. */
static double lateness(const struct source *source, __u64 now)
{
	return (double)(now - source->at) / source->period;
}

/* Returns the source to call next, or NULL if none is due. Single deadlines keep their place in time. Of the
 * periodic sources before the first of them, it is the latest in terms of its period: the interval of a
 * second that is due first must not delay one of 20 ms behind it. */
static struct source *next_due(const struct loop *loop, __u64 now)
{
	struct source *single = earliest(loop, false), *next = NULL;
	__u64 before = single && single->at <= now ? single->at : now + 1;

	for (struct source *source = loop->sources; source; source = source->next)
		if (source->due && !source->removed && source->period && source->at < before &&
		    (!next || lateness(source, now) > lateness(next, now)))
			next = source;
	return next || before > now ? next : single;
}

/* Calls one source that is due. Others have to wait until descriptors have been looked at again. */
static void call_due(struct loop *loop)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	struct source *source = loop->stopped ? NULL : next_due(loop, now);

	if (!source)
		return;
	if (source->period)
		source->at += ((now - source->at) / source->period + 1) * source->period;
	else
		source->removed = true;
	source->due(source->fd < 0 ? source->context : source);
}

#define READY_MOST 16

/*
 * Waits in a single system call for descriptors and the next deadline. Waiting first and asking for the
 * events afterwards would lose what a perf_event descriptor reports only once (perf_poll() in
 * kernel/events/core.c clears the wakeup). Before Linux 5.11, the timeout has a resolution of a millisecond.
 */
static int wait_for_any(struct loop *loop, struct epoll_event *events)
{
	const struct source *first = earliest(loop, true);
	struct timespec left = {0};
	__u64 now, ns;
	int nr;

	if (!first)
		return epoll_wait(loop->epoll, events, READY_MOST, -1);
	now = clock_ns(CLOCK_MONOTONIC);
	ns = first->at > now ? first->at - now : 0;
	left = timespec_of(ns);
	nr = loop->coarse ? -1 : epoll_pwait2(loop->epoll, events, READY_MOST, &left, NULL);
	if (nr >= 0 || (!loop->coarse && errno == EINTR))
		return nr;
	/* An old kernel does not have this call, and an old seccomp profile refuses it. */
	loop->coarse = true;
	ns = (ns + 999999) / 1000000;
	return epoll_wait(loop->epoll, events, READY_MOST, ns > INT_MAX ? INT_MAX : ns);
}

static void call_ready(struct loop *loop, const struct epoll_event *events, int nr)
{
	for (int i = 0; i < nr && !loop->stopped; i++) {
		struct source *source = events[i].data.ptr;

		if (!source->removed)
			source->ready(source->context, events[i].events);
	}
}

int loop_run(struct loop *loop)
{
	struct epoll_event events[READY_MOST];

	loop->stopped = false;
	while (!loop->stopped) {
		int nr = wait_for_any(loop, events);

		if (nr < 0 && errno != EINTR)
			return -errno;
		loop->calling = true;
		call_ready(loop, events, nr);
		call_due(loop);
		loop->calling = false;
		sweep(loop);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
