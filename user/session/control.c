// SPDX-License-Identifier: GPL-2.0-only
#include "session/control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/array.h"
#include "base/local.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/packet.h"
#include "base/visible.h"

static int refuse_control(struct refusal *refusal, const char *text, int error, const char *why)
{
	refuse(refusal, STATUS_USAGE, "option --control '%.200s'", text);
	refusal->error = error;
	because(refusal, "%s", why);
	return instead(refusal, "write fifo:CTL or fifo:CTL,ACK, of FIFOs that mkfifo made, or fd: and "
				"numbers of descriptors");
}

/* Returns the descriptor of a FIFO, or -1 with errno. EMEDIUMTYPE: it is none. */
static int open_fifo_here(const char *path)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	struct stat stat;

	if (fd < 0 || (!fstat(fd, &stat) && S_ISFIFO(stat.st_mode)))
		return fd;
	close(fd);
	errno = EMEDIUMTYPE;
	return -1;
}

static void open_fifo_apart(int socket, const void *path)
{
	int fd = open_fifo_here(path), error = fd < 0 ? errno : 0;

	packet_send(socket, (struct iovec[]){{&error, sizeof(error)}}, 1, fd);
}

/* How long to wait for the file system. Whoever reads and writes a FIFO waits for none. */
#define FIFO_NS 2000000000ULL

static int open_fifo(const char *path, const char *text, int *fd, struct refusal *refusal)
{
	int error = 0, err;

	if (local_place(path)) {
		*fd = open_fifo_here(path);
	} else {
		err = apart_once("nhmtap-control", open_fifo_apart, path, -1, &error, sizeof(error), fd,
				 FIFO_NS);
		errno = err ? err : error;
	}
	if (*fd >= 0)
		return 0;
	return refuse_control(refusal, text, errno == EMEDIUMTYPE || errno == ETIMEDOUT ? 0 : errno,
			      errno == EMEDIUMTYPE ? "that is no FIFO"
			      : errno == ETIMEDOUT ? "its file system does not answer"
						   : strerror(errno));
}

/* Takes an inherited descriptor. It is duplicated because its number may be needed otherwise. */
static int take_descriptor(const char *number, const char *text, int *fd, struct refusal *refusal)
{
	__u64 from;

	if (!number_whole(number, &from) || from > INT_MAX)
		return refuse_control(refusal, text, 0, "that is no number of a descriptor");
	*fd = fcntl(from, F_DUPFD_CLOEXEC, 3);
	if (*fd < 0)
		return refuse_control(refusal, text, errno, strerror(errno));
	/* COMMAND inherits neither descriptor. */
	fcntl(from, F_SETFD, FD_CLOEXEC);
	fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) | O_NONBLOCK);
	return 0;
}

int control_open(struct control *control, const char *text, struct refusal *refusal)
{
	int (*take)(const char *, const char *, int *, struct refusal *);
	char *copy, *rest, *ctl, *ack;
	int err;

	if (!text)
		return 0;
	if (!strncmp(text, "fifo:", 5))
		take = open_fifo;
	else if (!strncmp(text, "fd:", 3))
		take = take_descriptor;
	else
		return refuse_control(refusal, text, 0, "it begins with neither fifo: nor fd:");
	copy = rest = xstrdup(strchr(text, ':') + 1);
	ctl = strsep(&rest, ",");
	ack = strsep(&rest, ",");
	err = rest ? refuse_control(refusal, text, 0, "it has more than two parts")
		   : take(ctl, text, &control->fd, refusal);
	if (!err && ack)
		err = take(ack, text, &control->ack_fd, refusal);
	free(copy);
	return err;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void control_close(struct control *control)
{
	close_fd(&control->fd);
	close_fd(&control->ack_fd);
}

static enum control_command command_of(const char *line)
{
	static const struct {
		const char *name;
		enum control_command command;
	} commands[] = {
		{"enable", CONTROL_ENABLE}, {"disable", CONTROL_DISABLE}, {"snapshot", CONTROL_SNAPSHOT},
		{"ping", CONTROL_PING},	    {"stop", CONTROL_STOP},
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, line))
			return commands[i].command;
	say("nhmtap: option --control: there is no command '%s'. Next: write enable, disable, snapshot, ping "
	    "or stop.",
	    line);
	return CONTROL_UNKNOWN;
}

enum control_command control_next(struct control *control, const char **activity)
{
	char byte;
	ssize_t got;

	while ((got = read(control->fd, &byte, 1)) == 1) {
		/* perf's own writers end a command with either byte. */
		if (byte != '\n' && byte != '\0') {
			if (control->used < sizeof(control->line) - 1)
				control->line[control->used++] = byte;
			continue;
		}
		control->line[control->used] = '\0';
		if (!control->used)
			continue;
		control->used = 0;
		*activity = control->line + strcspn(control->line, " ");
		if (**activity)
			control->line[(*activity)++ - control->line] = '\0';
		return command_of(control->line);
	}
	control->ended = !got; /* end of a pipe (fd:): all writers have closed it */
	return CONTROL_NOTHING;
}

void control_acknowledge(const struct control *control)
{
	static const char ack[] = "ack\n";

	if (control->ack_fd >= 0 && write(control->ack_fd, ack, sizeof(ack) - 1) < 0)
		return; /* FIFO full: a writer that does not read it does not wait for answers */
}
