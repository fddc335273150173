// SPDX-License-Identifier: GPL-2.0-only
#include "host/cgroup_notices.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory.h"

struct cgroup_notices {
	int fd;
	struct watched {
		int watch;  /* inotify's number */
		bool again; /* asked for since the last cgroup_notices_keep() */
		char *folder;
	} * list; /* by number */
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

/* Returns the index of the first folder whose number is not less. */
static size_t place_of(const struct cgroup_notices *notices, int watch)
{
	return FIRST_NOT(notices->nr, i, notices->list[i].watch < watch);
}

static struct watched *find_watched(const struct cgroup_notices *notices, int watch)
{
	size_t place = place_of(notices, watch);

	return place < notices->nr && notices->list[place].watch == watch ? &notices->list[place] : NULL;
}

static struct watched *add_watched(struct cgroup_notices *notices, int watch, const char *folder)
{
	size_t place = place_of(notices, watch);
	struct watched *added;

	notices->list = xroom(notices->list, notices->nr, &notices->room, sizeof(*notices->list));
	added = &notices->list[place];
	memmove(added + 1, added, (notices->nr++ - place) * sizeof(*added));
	*added = (struct watched){.watch = watch, .folder = xstrdup(folder)};
	return added;
}

void cgroup_notices_watch(struct cgroup_notices *notices, const char *folder)
{
	int watch = inotify_add_watch(notices->fd, folder, IN_CREATE | IN_ONLYDIR);

	if (watch < 0)
		return;
	(find_watched(notices, watch) ?: add_watched(notices, watch, folder))->again = true;
}

void cgroup_notices_keep(struct cgroup_notices *notices)
{
	size_t kept = 0;

	for (size_t i = 0; i < notices->nr; i++) {
		struct watched *watched = &notices->list[i];

		if (watched->again) {
			watched->again = false;
			notices->list[kept++] = *watched;
		} else {
			inotify_rm_watch(notices->fd, watched->watch);
			free(watched->folder);
		}
	}
	notices->nr = kept;
}

static void take_notice(struct cgroup_notices *notices, const struct inotify_event *event,
			void (*made)(void *context, const char *folder), void *context)
{
	struct watched *watched = find_watched(notices, event->wd);
	char folder[PATH_MAX + NAME_MAX + 2];

	if (!watched || !(event->mask & IN_CREATE) || !(event->mask & IN_ISDIR) || !event->len)
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

			take_notice(notices, event, made, context);
			at += sizeof(*event) + event->len;
		}
}
