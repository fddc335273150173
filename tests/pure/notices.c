// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notices of CPUs for two listeners, with our own socket instead of the kernel's. Reads lines:
 *   says TEXT    the kernel sends this notice
 *   takes NAME   this listener ("first" or "second") takes notices
 *   loop         the loop handles the pending notices
 * and prints after each of the last two which listeners were called, with the CPUs that have gone.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/notices.h"

static int ends[2];

/* Replaces the C library's. */
int socket(int domain, int type, int protocol)
{
	return socketpair(AF_UNIX, type, 0, ends) ? -1 : ends[0];
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	return 0;
}

static char first[] = "first", second[] = "second";
static struct loop *loop;

static void follow(void *context, const struct cpus *gone)
{
	char text[100] = "-";

	if (cpus_next(gone, 0) >= 0)
		cpus_print(gone, text, sizeof(text));
	printf("%s:%s ", (char *)context, text);
}

static void stop(void *context)
{
	loop_stop(context);
}

/* Pending notices are handled before the timer. */
static void run_loop(void)
{
	loop_at(loop, 0, stop, loop);
	loop_run(loop);
}

int main(void)
{
	struct notices notices = NOTICES_CLOSED;
	char line[200];

	loop = loop_open();
	notices_listen(&notices, loop, "/", follow, first);
	notices_listen(&notices, loop, "/", follow, second);
	if (!loop || notices.socket < 0)
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "says ", 5)) {
			if (write(ends[1], line + 5, strlen(line + 5)) < 0)
				return 1;
			continue;
		}
		if (!strcmp(line, "loop"))
			run_loop();
		else
			notices_take(&notices, strcmp(line, "takes first") ? second : first);
		printf("\n");
	}
	notices_leave(&notices, first);
	notices_leave(&notices, second);
	loop_close(loop);
	close(ends[1]);
	return 0;
}
