// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads lines from a unix socket and publishes them to JetStream. The complete lines of a read are
 * one message, which is sent until the servers have acknowledged it. Nothing is read meanwhile, so
 * nhmtap keeps new lines in its queue.
 *
 *   ship nats://n1:4222,nats://n2:4222,nats://n3:4222 nhmtap.HOST /run/nhmtap/ship.socket
 *   nhmtap run CONFIG, with an output {"format": "flat", "path": "unix:/run/nhmtap/ship.socket"}
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "stream.h"

#define CONNECTIONS 8
#define MOST	    (512 << 10) /* half of the largest message (max_payload) */

struct connection {
	char *text;
	size_t used;
};

static void publish(jsCtx *stream, const char *subject, const char *text, size_t size)
{
	while (js_Publish(NULL, stream, subject, text, size, NULL, NULL) != NATS_OK)
		nats_Sleep(WAIT_MS);
}

/* Returns 0 if the connection has to be closed. An incomplete line is then dropped. */
static int take(struct connection *connection, int fd, jsCtx *stream, const char *subject)
{
	ssize_t n = read(fd, connection->text + connection->used, MOST - connection->used);
	char *end;
	size_t whole;

	if (n <= 0)
		return 0;
	connection->used += n;
	end = memrchr(connection->text, '\n', connection->used);
	if (!end)
		return connection->used < MOST;
	whole = end + 1 - connection->text;
	publish(stream, subject, connection->text, whole);
	connection->used -= whole;
	memmove(connection->text, end + 1, connection->used);
	return 1;
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, CONNECTIONS)) {
		perror(path);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	struct pollfd polled[1 + CONNECTIONS];
	struct connection connections[1 + CONNECTIONS] = {0};
	jsCtx *stream;

	if (argc != 4) {
		fprintf(stderr, "usage: ship URL,URL,URL SUBJECT SOCKET\n");
		return 1;
	}
	stream = stream_connect(argv[1]);
	stream_make(stream);
	for (int i = 0; i <= CONNECTIONS; i++)
		polled[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	polled[0].fd = listen_at(argv[3]);
	for (;;) {
		int room = 0;

		for (int i = 1; i <= CONNECTIONS; i++)
			room = polled[i].fd < 0 ? i : room;
		polled[0].events = room ? POLLIN : 0;
		poll(polled, 1 + CONNECTIONS, -1);
		for (int i = 1; i <= CONNECTIONS; i++) {
			if (polled[i].fd < 0 || !polled[i].revents ||
			    take(&connections[i], polled[i].fd, stream, argv[2]))
				continue;
			close(polled[i].fd);
			free(connections[i].text);
			polled[i].fd = -1;
		}
		if (room && polled[0].revents & POLLIN) {
			polled[room] =
				(struct pollfd){.fd = accept(polled[0].fd, NULL, NULL), .events = POLLIN};
			connections[room] = (struct connection){.text = malloc(MOST)};
		}
	}
}
