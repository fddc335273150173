// SPDX-License-Identifier: GPL-2.0-only
#include "output/address.h"

#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/local.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/packet.h"
#include "base/thread.h"

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

bool address_is_url(const char *place)
{
	return place && (begins(place, "http://") || begins(place, "https://"));
}

int address_check_file(const char *asked, const char *path, struct refusal *refusal)
{
	int scheme = path ? strcspn(path, ":/") : 0;

	if (!scheme || strncmp(path + scheme, "://", 3))
		return 0;
	refuse(refusal, STATUS_USAGE, "%s '%.300s'", asked, path);
	because(refusal, "nothing is sent by %.*s://", scheme, path);
	return instead(refusal, "write http:// or https://; a file of this name is ./%.200s", path);
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
	struct sockaddr_un *at;
	const char *path = place + strlen(UNIX);

	if (!*path || strlen(path) >= sizeof(at->sun_path))
		return refuse_place(refusal, asked, place, "a socket's path has 1 to 107 bytes");
	if (!address)
		return 0;
	at = (struct sockaddr_un *)&address->socket;
	at->sun_family = AF_UNIX;
	strcpy(at->sun_path, path);
	address->length = offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1;
	return 0;
}

/* A name that a thread looks up. Who is last to leave it frees it. */
struct lookup {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done, left;
	char *host, *port;
	int err;
	struct addrinfo *found;
};

static void lookup_free(struct lookup *lookup)
{
	if (lookup->found)
		freeaddrinfo(lookup->found);
	pthread_cond_destroy(&lookup->changed);
	pthread_mutex_destroy(&lookup->lock);
	free(lookup->host);
	free(lookup->port);
	free(lookup);
}

static void *look_up_in_thread(void *argument)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
	struct lookup *lookup = argument;
	int err = getaddrinfo(lookup->host, lookup->port, &hints, &found);
	bool left;

	pthread_mutex_lock(&lookup->lock);
	lookup->err = err;
	lookup->found = err ? NULL : found;
	lookup->done = true;
	left = lookup->left;
	pthread_cond_broadcast(&lookup->changed);
	pthread_mutex_unlock(&lookup->lock);
	if (left)
		lookup_free(lookup);
	return NULL;
}

/* getaddrinfo(3) waits for each name server, by default 5 s and twice. At the start that is what a user
 * expects; later, samples and SIGTERM wait for it. */
#define START_MS 30000
#define LATER_MS 1500

static unsigned int wait_ms = START_MS;

void address_hurry(void)
{
	wait_ms = LATER_MS;
}

static int look_up_host(struct address *address, const char *asked, const char *place, const char *host,
			const char *port, struct refusal *refusal)
{
	struct lookup *lookup = xcalloc(1, sizeof(*lookup));
	__u64 deadline = clock_ns(CLOCK_MONOTONIC) + wait_ms * 1000000ULL;
	const char *why = NULL;
	pthread_t thread;
	bool done;

	pthread_mutex_init(&lookup->lock, NULL);
	condition_init(&lookup->changed);
	lookup->host = xstrdup(host);
	lookup->port = xstrdup(port);
	if (thread_start(&thread, look_up_in_thread, lookup))
		pthread_detach(thread);
	else
		look_up_in_thread(lookup);
	pthread_mutex_lock(&lookup->lock);
	while (!lookup->done && condition_wait(&lookup->changed, &lookup->lock, deadline))
		;
	done = lookup->done;
	lookup->left = !done;
	pthread_mutex_unlock(&lookup->lock);
	if (!done)
		return refuse_place(refusal, asked, place, "the name servers have not answered in time");
	if (lookup->err) {
		why = gai_strerror(lookup->err);
	} else {
		memcpy(&address->socket, lookup->found->ai_addr, lookup->found->ai_addrlen);
		address->length = lookup->found->ai_addrlen;
	}
	lookup_free(lookup);
	return why ? refuse_place(refusal, asked, place, why) : 0;
}

static int tcp_address(struct address *address, const char *asked, const char *place, struct refusal *refusal)
{
	char *host = xstrdup(place + strlen(TCP)), *port = strrchr(host, ':'), *name = host;
	__u64 number;
	int err;

	if (!port || port == host || !port[1]) {
		free(host);
		return refuse_place(refusal, asked, place, "it names no host and port");
	}
	*port++ = '\0';
	/* getaddrinfo(3) would take 65537 for 1. */
	if (number_whole(port, &number) ? number > UINT16_MAX : !port[strspn(port, "0123456789")]) {
		free(host);
		return refuse_place(refusal, asked, place, "a port is a number from 0 to 65535");
	}
	if (*name == '[' && port[-2] == ']') {
		port[-2] = '\0';
		name++;
	}
	err = address ? look_up_host(address, asked, place, name, port, refusal) : 0;
	free(host);
	return err;
}

int address_read(struct address *address, const char *asked, const char *place, struct refusal *refusal)
{
	if (address)
		*address = (struct address){0};
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

static int make_socket(const struct address *address)
{
	int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	unsigned int silent_ms = SILENT_MS;

	/* Fails on unix sockets, which do not need it. */
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
	return fd;
}

/* Returns 0 or an errno. */
static int start_to_connect(int fd, const struct address *address)
{
	return connect(fd, (const struct sockaddr *)&address->socket, address->length) && errno != EINPROGRESS
		       ? errno
		       : 0;
}

/* Returns the socket, or closes it if there is an error. */
static int socket_unless(int error, int fd)
{
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

int address_connect(const struct address *address)
{
	int fd = make_socket(address);

	return fd < 0 ? -1 : socket_unless(start_to_connect(fd, address), fd);
}

/* --- connecting by a process ------------------------------------------------------------------ */

struct joining {
	struct apart process;
	int fd; /* the socket, which the process has as well */
};

static void serve_connection(int socket, const void *address)
{
	int error = start_to_connect(APART_KEPT, address);

	packet_send(socket, (struct iovec[]){{&error, sizeof(error)}}, 1, -1);
}

/* Returns NULL with errno. */
static struct joining *begin_to_join(const struct address *address)
{
	struct joining *joining = xcalloc(1, sizeof(*joining));

	joining->fd = make_socket(address);
	if (joining->fd >= 0 &&
	    apart_start(&joining->process, "nhmtap-connect", serve_connection, address, joining->fd))
		return joining;
	address_part(joining);
	return NULL;
}

int address_join(const struct address *address, struct joining **joining, unsigned long long wait_ns)
{
	const char *path = address_path(address);
	int error, none, fd, err;

	if (!*joining && (!path || local_place(path)))
		return address_connect(address);
	if (!*joining)
		*joining = begin_to_join(address);
	if (!*joining)
		return -1;
	err = apart_receive(&(*joining)->process, &error, sizeof(error), &none,
			    clock_ns(CLOCK_MONOTONIC) + wait_ns);
	if (err == ETIMEDOUT) {
		errno = err;
		return -1;
	}
	fd = (*joining)->fd;
	(*joining)->fd = -1;
	address_part(*joining);
	*joining = NULL;
	return socket_unless(err ? err : error, fd);
}

void address_part(struct joining *joining)
{
	if (!joining)
		return;
	apart_leave(&joining->process);
	if (joining->fd >= 0)
		close(joining->fd);
	free(joining);
}
