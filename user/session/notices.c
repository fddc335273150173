// SPDX-License-Identifier: GPL-2.0-only
#include "session/notices.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "base/memory.h"

#define KERNEL_NOTICES 1 /* the multicast group of the kernel's own notices: lib/kobject_uevent.c */

/* The begin of notices about CPUs: "offline@/devices/system/cpu/cpu1". */
#define OFFLINE_NOTICE "offline@/devices/system/cpu/cpu"
#define ONLINE_NOTICE  "online@/devices/system/cpu/cpu"

struct listener {
	struct listener *next;
	notice_fn follow;
	void *context;
};

static int open_socket(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_NOTICES};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Reads all pending notices. Adds CPUs that went offline, which may be online again. Returns whether any CPU
 * went offline or online, or may have: notices that do not fit the socket's buffer are lost. */
static bool read_notices(const struct notices *notices, struct cpus *gone)
{
	bool any = false;
	char text[4096];
	ssize_t length;

	*gone = (struct cpus){0};
	if (notices->socket < 0)
		return false;
	while ((length = recv(notices->socket, text, sizeof(text) - 1, 0)) > 0 ||
	       (length < 0 && errno == ENOBUFS)) {
		int cpu;

		text[length > 0 ? length : 0] = '\0';
		any |= length < 0 || begins(text, ONLINE_NOTICE);
		if (!begins(text, OFFLINE_NOTICE))
			continue;
		any = true;
		cpu = atoi(text + strlen(OFFLINE_NOTICE));
		if (cpu >= 0 && cpu < CPUS_MAX)
			cpus_add(gone, cpu);
	}
	return any;
}

/* Reads pending notices and calls all listeners: notices can be read only once. */
static bool take_for_all(const struct notices *notices)
{
	struct cpus gone;
	bool any = read_notices(notices, &gone);

	for (const struct listener *one = notices->listeners; any && one; one = one->next)
		one->follow(one->context, &gone);
	return any;
}

static void on_notice(void *context, short events)
{
	take_for_all(context);
}

void notices_take(struct notices *notices, void *context)
{
	const struct cpus none = {0};

	if (take_for_all(notices))
		return;
	for (const struct listener *one = notices->listeners; one; one = one->next)
		if (one->context == context)
			one->follow(context, &none);
}

static void open_all(struct notices *notices, struct loop *loop, const char *root)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/online", root);
	notices->loop = loop;
	notices->online = open(path, O_RDONLY | O_CLOEXEC);
	notices->socket = open_socket();
	if (notices->socket >= 0)
		notices->source = loop_watch(loop, notices->socket, POLLIN, on_notice, notices);
}

static void close_all(struct notices *notices)
{
	loop_remove(notices->loop, &notices->source);
	if (notices->online >= 0)
		close(notices->online);
	if (notices->socket >= 0)
		close(notices->socket);
	notices->online = notices->socket = -1;
}

void notices_listen(struct notices *notices, struct loop *loop, const char *root, notice_fn follow,
		    void *context)
{
	struct listener *listener = xmalloc(sizeof(*listener));

	if (!notices->listeners)
		open_all(notices, loop, root);
	*listener = (struct listener){notices->listeners, follow, context};
	notices->listeners = listener;
}

void notices_leave(struct notices *notices, void *context)
{
	for (struct listener **at = &notices->listeners; *at; at = &(*at)->next) {
		struct listener *listener = *at;

		if (listener->context != context)
			continue;
		*at = listener->next;
		free(listener);
		if (!notices->listeners)
			close_all(notices);
		return;
	}
}

bool notices_online(const struct notices *notices, struct cpus *online)
{
	char text[4096];
	ssize_t length = notices->online < 0 ? -1 : pread(notices->online, text, sizeof(text) - 1, 0);

	if (length <= 0)
		return false;
	text[length] = '\0';
	return !cpus_parse(text, online);
}
