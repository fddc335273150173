// SPDX-License-Identifier: GPL-2.0-only
#include "host/cgroup_notices.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/memory.h"

struct cgroup_notices {
	int fd;
	struct watched {
		int watch; /* inotify's number */
		char *folder;
	} * list;
	size_t nr, room;
};

struct cgroup_notices *cgroup_notices_open(void)
{
	struct cgroup_notices *notices;
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		return NULL;
	notices = xcalloc(1, sizeof(*notices));
	notices->fd = fd;
	return notices;
}

void cgroup_notices_close(struct cgroup_notices *notices)
{
	if (!notices)
		return;
	for (size_t i = 0; i < notices->nr; i++)
		free(notices->list[i].folder);
	free(notices->list);
	close(notices->fd);
	free(notices);
}

int cgroup_notices_fd(const struct cgroup_notices *notices)
{
	return notices->fd;
}

static struct watched *find(const struct cgroup_notices *notices, int watch)
{
	for (size_t i = 0; i < notices->nr; i++)
		if (notices->list[i].watch == watch)
			return &notices->list[i];
	return NULL;
}

void cgroup_notices_watch(struct cgroup_notices *notices, const char *folder)
{
	int watch = inotify_add_watch(notices->fd, folder, IN_CREATE | IN_ONLYDIR);

	if (watch < 0 || find(notices, watch))
		return;
	notices->list = xroom(notices->list, notices->nr, &notices->room, sizeof(*notices->list));
	notices->list[notices->nr++] = (struct watched){watch, xstrdup(folder)};
}

/* The folder was removed, and its watch with it. */
static void forget(struct cgroup_notices *notices, struct watched *watched)
{
	free(watched->folder);
	*watched = notices->list[--notices->nr];
}

static void take(struct cgroup_notices *notices, const struct inotify_event *event,
		 void (*made)(void *context, const char *folder), void *context)
{
	struct watched *watched = find(notices, event->wd);
	char folder[PATH_MAX + NAME_MAX + 2];

	if (!watched)
		return;
	if (event->mask & IN_IGNORED) {
		forget(notices, watched);
		return;
	}
	if (!(event->mask & IN_CREATE) || !(event->mask & IN_ISDIR) || !event->len)
		return;
	snprintf(folder, sizeof(folder), "%s/%s", watched->folder, event->name);
	made(context, folder);
}

void cgroup_notices_take(struct cgroup_notices *notices, void (*made)(void *context, const char *folder),
			 void *context)
{
	char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t size;

	while ((size = read(notices->fd, buffer, sizeof(buffer))) > 0)
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *event = (const void *)(buffer + at);

			take(notices, event, made, context);
			at += sizeof(*event) + event->len;
		}
}
