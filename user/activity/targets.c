// SPDX-License-Identifier: GPL-2.0-only
#include "activity/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "host/processes.h"

#define LOOK_NS 100000000

struct watched {
	struct targets *targets;
	pid_t id;
	bool thread;
	int fd;	   /* pidfd; -1: not available, or it has ended */
	bool left; /* still running */
	struct source *source;
};

struct targets {
	struct loop *loop;
	due_fn gone;
	struct counters *counters;
	void *context;
	struct watched *list;
	size_t nr, left;
	struct source *look; /* timer to poll those without a pidfd */
};

static void on_ended(void *context, short events);
static void on_look(void *context);

/* Returns whether it is still there. */
static bool begin_watched(struct watched *watched)
{
	struct targets *targets = watched->targets;
	pid_t id = watched->id;

	watched->fd = syscall(SYS_pidfd_open, id, watched->thread ? O_EXCL /* PIDFD_THREAD */ : 0);
	if (watched->fd < 0 && watched->thread)
		watched->fd = syscall(SYS_pidfd_open, id, 0); /* works if it is its process's first thread */
	if (watched->fd >= 0)
		watched->source = loop_watch(targets->loop, watched->fd, POLLIN, on_ended, watched);
	else if (errno == ESRCH || !proc_is_there(id, watched->thread))
		return false;
	else if (!targets->look)
		targets->look =
			loop_every(targets->loop, clock_ns(CLOCK_MONOTONIC), LOOK_NS, on_look, targets);
	return true;
}

/* Watches a thread that has got its process's id. */
static bool goes_on(struct watched *watched)
{
	pid_t id = watched->thread ? counters_go_on(watched->targets->counters, watched->id) : 0;

	if (!id)
		return false;
	watched->id = id;
	return begin_watched(watched);
}

static void has_ended(struct watched *watched)
{
	struct targets *targets = watched->targets;

	loop_remove(targets->loop, &watched->source);
	if (watched->fd >= 0)
		close(watched->fd);
	watched->fd = -1;
	if (goes_on(watched))
		return;
	watched->left = false;
	if (!--targets->left)
		targets->gone(targets->context);
}

static void on_ended(void *context, short events)
{
	has_ended(context);
}

static void on_look(void *context)
{
	struct targets *targets = context;
	size_t nr = targets->nr;

	for (size_t i = 0; i < nr; i++) {
		struct watched *watched = &targets->list[i];

		if (!watched->left || watched->fd >= 0 || proc_is_there(watched->id, watched->thread))
			continue;
		if (targets->left == 1) { /* `gone` may release `targets` */
			has_ended(watched);
			return;
		}
		has_ended(watched);
	}
}

static void on_none(void *context)
{
	struct targets *targets = context;

	targets->look = NULL;
	targets->gone(targets->context);
}

static void watch_id(struct targets *targets, pid_t id, bool thread)
{
	struct watched *watched = &targets->list[targets->nr++];

	*watched = (struct watched){.targets = targets,
				    .id = thread ? id : counters_process(targets->counters, id),
				    .thread = thread};
	watched->left = begin_watched(watched) || goes_on(watched);
	targets->left += watched->left;
}

struct targets *targets_watch(const struct target *target, struct loop *loop, struct counters *counters,
			      due_fn gone, void *context)
{
	struct targets *targets;

	if (!target->nr_pids && !target->nr_tids)
		return NULL;
	targets = xcalloc(1, sizeof(*targets));
	*targets = (struct targets){.loop = loop, .gone = gone, .counters = counters, .context = context};
	targets->list = xcalloc(target->nr_pids + target->nr_tids, sizeof(*targets->list));
	for (size_t i = 0; i < target->nr_pids; i++)
		watch_id(targets, target->pids[i], false);
	for (size_t i = 0; i < target->nr_tids; i++)
		watch_id(targets, target->tids[i], true);
	if (!targets->left)
		targets->look = loop_at(loop, 0, on_none, targets);
	return targets;
}

void targets_release(struct targets *targets)
{
	if (!targets)
		return;
	loop_remove(targets->loop, &targets->look);
	for (size_t i = 0; i < targets->nr; i++) {
		loop_remove(targets->loop, &targets->list[i].source);
		if (targets->list[i].fd >= 0)
			close(targets->list[i].fd);
	}
	free(targets->list);
	free(targets);
}
