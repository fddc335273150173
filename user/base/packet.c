// SPDX-License-Identifier: GPL-2.0-only
#include "base/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Number of interruptions by signals that are tolerated, so that a call that always fails with EINTR can't
 * hang us. */
#define INTERRUPTED_MOST 100

bool packet_send(int socket, struct iovec *parts, size_t nr, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = nr};
	size_t size = 0;

	for (size_t i = 0; i < nr; i++)
		size += parts[i].iov_len;
	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

size_t packet_receive(int socket, void *bytes, size_t most, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {bytes, most};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	const struct cmsghdr *first;
	ssize_t got = -1;

	*fd = -1;
	for (int tries = 0; tries < INTERRUPTED_MOST; tries++) {
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
		if (got >= 0 || errno != EINTR)
			break;
	}
	first = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (first && first->cmsg_type == SCM_RIGHTS && first->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(first), sizeof(*fd));
	/* The kernel has closed the descriptors that did not fit. */
	if (got > 0 && message.msg_flags & MSG_CTRUNC) {
		if (*fd >= 0)
			close(*fd);
		*fd = FD_CUT;
	}
	return got > 0 && !(message.msg_flags & MSG_TRUNC) ? got : 0;
}
