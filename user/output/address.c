// SPDX-License-Identifier: GPL-2.0-only
#include "output/address.h"

#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include "memory.h"

#define UNIX "unix:"
#define TCP  "tcp:"

/* A peer that does not acknowledge anything for this long is considered gone. */
#define SILENT_MS 30000

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

bool address_is(const char *place)
{
	return place && (begins(place, UNIX) || begins(place, TCP));
}

static int refuse_place(struct refusal *refusal, const char *asked, const char *place, const char *why)
{
	refuse(refusal, STATUS_USAGE, "%s '%.300s'", asked, place);
	because(refusal, "%s", why);
	return instead(refusal, "write unix:PATH, tcp:HOST:PORT or tcp:[ADDRESS]:PORT");
}

static int unix_address(struct address *address, const char *asked, const char *place,
			struct refusal *refusal)
{
	struct sockaddr_un *at = (struct sockaddr_un *)&address->socket;
	const char *path = place + strlen(UNIX);

	if (!*path || strlen(path) >= sizeof(at->sun_path))
		return refuse_place(refusal, asked, place, "a socket's path has 1 to 107 bytes");
	at->sun_family = AF_UNIX;
	strcpy(at->sun_path, path);
	address->length = offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1;
	return 0;
}

static int look_up(struct address *address, const char *asked, const char *place, const char *host,
		   const char *port, struct refusal *refusal)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found;
	int err = getaddrinfo(host, port, &hints, &found);

	if (err)
		return refuse_place(refusal, asked, place, gai_strerror(err));
	memcpy(&address->socket, found->ai_addr, found->ai_addrlen);
	address->length = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static int tcp_address(struct address *address, const char *asked, const char *place, struct refusal *refusal)
{
	char *host = xstrdup(place + strlen(TCP)), *port = strrchr(host, ':'), *name = host;
	int err;

	if (!port || port == host || !port[1]) {
		free(host);
		return refuse_place(refusal, asked, place, "it names no host and port");
	}
	*port++ = '\0';
	if (*name == '[' && port[-2] == ']') {
		port[-2] = '\0';
		name++;
	}
	err = look_up(address, asked, place, name, port, refusal);
	free(host);
	return err;
}

int address_read(struct address *address, const char *asked, const char *place, struct refusal *refusal)
{
	*address = (struct address){0};
	if (!address_is(place))
		return refuse_place(refusal, asked, place, "it begins with no kind of address");
	return begins(place, UNIX) ? unix_address(address, asked, place, refusal)
				   : tcp_address(address, asked, place, refusal);
}

bool address_is_local(const struct address *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&address->socket;
	const struct in6_addr *six = &((const struct sockaddr_in6 *)&address->socket)->sin6_addr;

	switch (address->socket.ss_family) {
	case AF_INET:
		return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(six) ||
		       (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == IN_LOOPBACKNET);
	}
	return address->socket.ss_family == AF_UNIX;
}

const char *address_path(const struct address *address)
{
	return address->socket.ss_family == AF_UNIX ? ((const struct sockaddr_un *)&address->socket)->sun_path
						    : NULL;
}

int address_connect(const struct address *address)
{
	int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;
	unsigned int silent_ms = SILENT_MS;

	if (fd < 0)
		return -1;
	/* Fails on unix sockets, which do not need it. */
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
	if (!connect(fd, (const struct sockaddr *)&address->socket, address->length) || errno == EINPROGRESS)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}
