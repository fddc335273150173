// SPDX-License-Identifier: GPL-2.0-only
#include "session/listen.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/late.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/note.h"
#include "base/packet.h"
#include "base/path.h"
#include "base/visible.h"
#include "output/address.h"
#include "session/loop.h"
#include "session/session.h"

#define FUNCTIONS(X)                                                                                         \
	X(MHD_add_connection)                                                                                \
	X(MHD_add_response_header)                                                                           \
	X(MHD_create_response_from_buffer)                                                                   \
	X(MHD_destroy_response)                                                                              \
	X(MHD_get_connection_info)                                                                           \
	X(MHD_get_daemon_info)                                                                               \
	X(MHD_get_timeout)                                                                                   \
	X(MHD_queue_response)                                                                                \
	X(MHD_run)                                                                                           \
	X(MHD_start_daemon)                                                                                  \
	X(MHD_stop_daemon)                                                                                   \
	X(MHD_get_version)

static const char *libmicrohttpd_version(void)
{
	return MHD_get_version();
}

DEFINE_LATE(libmicrohttpd, LIBMICROHTTPD_SONAME, "libmicrohttpd12", FUNCTIONS, libmicrohttpd_version);

/*
 * The most connections at the same time: more than any scraper and probe need. Connections that are silent
 * for SILENT_S seconds are closed. If there is no room for a new one, the one that has been idle for longest
 * makes room, so that nobody can keep others out by connecting and saying nothing.
 */
#define CONNECTIONS_MOST 32
#define SILENT_S	 10

/* The most that are accepted before the loop does something else. */
#define ACCEPT_MOST 64

/* Pause before accepting again when there is no descriptor left. */
#define PAUSE_NS 100000000ULL

#define PLAIN "text/plain; charset=utf-8"

struct connection {
	int fd;	       /* libmicrohttpd's; -1: this place is free */
	__u64 used_ns; /* when it was accepted, or last sent a request: CLOCK_MONOTONIC */
	bool answered; /* a request is being answered */
	bool ending;   /* it was shut down */
};

/* The file of a unix socket. The folder may be on a file system that does not answer, and so may the other
 * sockets that have to be looked at, so a process makes and removes it, and says this. */
struct socket_file {
	int error;
	dev_t device; /* of the file that was made */
	ino_t inode;
};

struct listen {
	struct session *session;
	struct MHD_Daemon *daemon;
	int fd; /* the socket that listens. libmicrohttpd, given it, would not accept again after a full house
		 */
	struct source *coming, *ready, *due, *pause;
	struct connection connections[CONNECTIONS_MOST];
	struct connection *adding; /* place of the connection that libmicrohttpd is being given */
	char *path;		   /* path of the socket; NULL if it is not a unix socket */
	struct socket_file file;
};

/* --- pages ------------------------------------------------------------------------------------ */

/* The linker defines these for a section whose name is an identifier. */
extern const struct page *const __start_pages[], *const __stop_pages[];

static unsigned int answer_health(struct session *session, struct text *body, const char **type)
{
	text_add(body, "ok\n");
	return MHD_HTTP_OK;
}

static const struct page health = {"/healthz", answer_health};
REGISTER_PAGE(health);

static const struct page *page_of(const char *path)
{
	for (const struct page *const *at = __start_pages; at < __stop_pages; at++)
		if (!strcmp((*at)->path, path))
			return *at;
	return NULL;
}

static unsigned int say_what_there_is(struct text *body, const char *path)
{
	text_add(body, "there is no page '%.200s'; there are:", path);
	for (const struct page *const *at = __start_pages; at < __stop_pages; at++)
		text_add(body, " %s", (*at)->path);
	text_add(body, "\n");
	return MHD_HTTP_NOT_FOUND;
}

static enum MHD_Result send_body(struct MHD_Connection *connection, unsigned int status, const char *type,
				 struct text *body)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(body->used, body->bytes, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	if (!response) {
		free(body->bytes);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static struct connection *connection_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void note_request(struct MHD_Connection *connection)
{
	struct connection *own = connection_of(connection);

	own->used_ns = clock_ns(CLOCK_MONOTONIC);
	own->answered = true;
}

static void on_answered(void *context, struct MHD_Connection *connection, void **seen,
			enum MHD_RequestTerminationCode how)
{
	connection_of(connection)->answered = false;
}

/* Called for a request's head, and again at its end. It is answered only at its end; otherwise the connection
 * could not be used for another request. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *sent,
				  size_t *sent_size, void **seen)
{
	struct listen *listen = context;
	bool reads = !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
	const struct page *page = page_of(url);
	const char *type = PLAIN;
	struct text body = {0};
	unsigned int status;

	if (!*seen || *sent_size) {
		*seen = listen;
		*sent_size = 0;
		return MHD_YES;
	}
	note_request(connection);
	if (reads && page) {
		status = page->answer(listen->session, &body, &type);
	} else if (reads) {
		status = say_what_there_is(&body, url);
	} else {
		text_add(&body, "pages are read with GET\n");
		status = MHD_HTTP_METHOD_NOT_ALLOWED;
	}
	return send_body(connection, status, type, &body);
}

/* --- the loop --------------------------------------------------------------------------------- */

static void on_due(void *context);

static void serve_daemon(struct listen *listen)
{
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(listen->daemon);
	loop_remove(listen->session->loop, &listen->due);
	if (MHD_get_timeout(listen->daemon, &ms) == MHD_YES)
		listen->due = loop_at(listen->session->loop, clock_ns(CLOCK_MONOTONIC) + ms * 1000000, on_due,
				      listen);
}

static void on_due(void *context)
{
	struct listen *listen = context;

	listen->due = NULL; /* the timer is gone after its call */
	serve_daemon(listen);
}

static void on_ready(void *context, short events)
{
	serve_daemon(context);
}

/* --- connections ------------------------------------------------------------------------------ */

static void on_connection(void *context, struct MHD_Connection *connection, void **own,
			  enum MHD_ConnectionNotificationCode what)
{
	struct listen *listen = context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*own = listen->adding;
		return;
	}
	((struct connection *)*own)->fd = -1;
}

/* A client is given this long to send its request before it counts as idle. */
#define FRESH_NS 1000000000ULL

static bool is_idle(const struct connection *one, __u64 now)
{
	return !one->answered && one->used_ns + FRESH_NS < now;
}

static bool is_idler(const struct connection *one, const struct connection *other, __u64 now)
{
	if (is_idle(one, now) != is_idle(other, now))
		return is_idle(one, now);
	return one->used_ns < other->used_ns;
}

/* Closes the connection that has been idle for longest. */
static void make_room(struct listen *listen)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);
	struct connection *idlest = NULL;

	for (size_t i = 0; i < CONNECTIONS_MOST; i++) {
		struct connection *each = &listen->connections[i];

		if (each->fd >= 0 && !each->ending && (!idlest || is_idler(each, idlest, now)))
			idlest = each;
	}
	if (!idlest)
		return;
	idlest->ending = true;
	shutdown(idlest->fd, SHUT_RDWR);
	/* It sees the end, closes, and tells so in on_connection(). */
	for (int i = 0; i < 3 && idlest->fd >= 0; i++)
		MHD_run(listen->daemon);
}

static struct connection *free_place(struct listen *listen)
{
	for (size_t i = 0; i < CONNECTIONS_MOST; i++)
		if (listen->connections[i].fd < 0)
			return &listen->connections[i];
	return NULL;
}

static void on_pause_over(void *context)
{
	struct listen *listen = context;

	listen->pause = NULL;
	loop_listen(listen->coming, POLLIN);
}

/* The socket stays readable as long as a connection waits, so it is not watched for a moment. */
static void pause_accepting(struct listen *listen)
{
	if (listen->pause)
		return;
	loop_listen(listen->coming, 0);
	listen->pause =
		loop_at(listen->session->loop, clock_ns(CLOCK_MONOTONIC) + PAUSE_NS, on_pause_over, listen);
}

/* Accepts a connection. Returns whether there may be another one. */
static bool accept_one(struct listen *listen)
{
	struct sockaddr_storage from = {0};
	socklen_t size = sizeof(from);
	struct connection *place = free_place(listen);
	int fd;

	if (!place) {
		make_room(listen);
		place = free_place(listen);
	}
	fd = place ? accept4(listen->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC) : -1;
	if (fd < 0 && place && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
		return errno != EAGAIN;
	if (fd < 0) {
		make_room(listen);
		pause_accepting(listen);
		return false;
	}
	*place = (struct connection){.fd = fd, .used_ns = clock_ns(CLOCK_MONOTONIC)};
	listen->adding = place;
	if (MHD_add_connection(listen->daemon, fd, (struct sockaddr *)&from, size) != MHD_YES)
		place->fd = -1; /* it has closed the descriptor */
	return true;
}

/* Each is served at once: mostly its request has come already. */
static void on_coming(void *context, short events)
{
	struct listen *listen = context;

	for (int i = 0; i < ACCEPT_MOST && accept_one(listen); i++)
		MHD_run(listen->daemon);
	serve_daemon(listen);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int refuse_listen(struct refusal *refusal, const char *place, const char *next)
{
	refuse(refusal, STATUS_USAGE, LISTEN_OPTION " '%.300s'", place);
	refusal->error = errno;
	because(refusal, "%s", guarded_why(errno));
	return instead(refusal, "%s", next);
}

/* Whether a socket of this path is bound in this network namespace. A server that does not listen yet refuses
 * connections, like none. Where the path is relative to a folder that is not known, its name decides. */
static bool is_bound(const char *path)
{
	FILE *file = fopen("/proc/net/unix", "re");
	const char *name = path_last(path);
	char line[512];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		const char *at = strpbrk(line, "/"), *last;
		struct stat one, other;

		line[strcspn(line, "\n")] = '\0';
		last = strrchr(line, at ? '/' : ' ');
		if (!last || strcmp(last + 1, name))
			continue;
		at = at && at[-1] == ' ' ? at : NULL;
		found = !at || (!lstat(at, &one) && !lstat(path, &other) && one.st_dev == other.st_dev &&
				one.st_ino == other.st_ino);
	}
	if (file)
		fclose(file);
	return found;
}

/* Whether it is a socket at which nobody listens: a run that was killed has left it behind. */
static bool is_left_behind(const struct address *address, const char *path)
{
	struct stat stat;
	int fd;

	if (lstat(path, &stat) || !S_ISSOCK(stat.st_mode))
		return false;
	fd = address_connect(address);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == ECONNREFUSED && !is_bound(path);
}

/* Only nhmtap's user and group may connect, because pages can name what other programs run. */
static int bind_unix_here(int fd, const struct address *address, const char *path)
{
	mode_t mask = umask(0117);
	int err = bind(fd, (const struct sockaddr *)&address->socket, address->length);

	if (err && errno == EADDRINUSE) {
		if (is_left_behind(address, path) && !unlink(path))
			err = bind(fd, (const struct sockaddr *)&address->socket, address->length);
		else
			errno = EADDRINUSE;
	}
	umask(mask);
	return err;
}

#define FILE_NS	  2000000000ULL /* for making it */
#define LAST_NS	  300000000ULL	/* for removing it: SIGTERM may wait */
#define FILE_NAME "nhmtap-listen"

static struct socket_file make_file(int fd, const struct address *address)
{
	const char *path = address_path(address);
	struct stat made;

	if (bind_unix_here(fd, address, path))
		return (struct socket_file){.error = errno};
	if (lstat(path, &made))
		return (struct socket_file){0};
	return (struct socket_file){.device = made.st_dev, .inode = made.st_ino};
}

static void bind_apart(int socket, const void *context)
{
	const struct address *address = context;
	struct socket_file file = make_file(APART_KEPT, address);

	if (!packet_send(socket, (struct iovec[]){{&file, sizeof(file)}}, 1, -1) && !file.error)
		unlink(address_path(address)); /* it comes too late */
}

/* Binds the unix socket. Returns 0, or -1 with errno. */
static int bind_unix(int fd, const struct address *address, struct socket_file *file)
{
	int none, err = apart_once(FILE_NAME, bind_apart, address, fd, file, sizeof(*file), &none, FILE_NS);

	if (err == EAGAIN) {
		*file = make_file(fd, address);
		err = 0;
	}
	errno = err ? err : file->error;
	return errno ? -1 : 0;
}

/* Whether it is HOST:PORT without a kind, as other programs take it. A name other than localhost would have
 * to be looked up, so it is taken with a kind only. */
static bool is_host_and_port(const char *place)
{
	const char *colon = strrchr(place, ':');
	size_t length = colon ? colon - place : 0;
	char host[64];
	unsigned char any[sizeof(struct in6_addr)];

	if (!length || length >= sizeof(host) || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)length, place);
	if (*host != '[')
		return !strcmp(host, "localhost") || inet_pton(AF_INET, host, any) == 1;
	if (host[length - 1] != ']')
		return false;
	host[length - 1] = '\0';
	return inet_pton(AF_INET6, host + 1, any) == 1;
}

static bool is_port(const char *text)
{
	__u64 number;

	return number_whole(text, &number) && number <= UINT16_MAX;
}

/* The port of a place like "9400", ":9400" and "*:9400", with which other programs listen at all addresses.
 * NULL: it is none. */
static const char *port_alone(const char *place)
{
	const char *port = !strncmp(place, "*:", 2) ? place + 2 : place + (*place == ':');

	return is_port(port) ? port : NULL;
}

static bool is_name_and_port(const char *place)
{
	size_t length = strspn(place, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");

	return length && place[length] == ':' && is_port(place + length + 1);
}

/* Refuses a place without a kind, with what was probably meant. */
static int refuse_kindless(const char *place, struct refusal *refusal)
{
	const char *port = port_alone(place);

	refuse(refusal, STATUS_USAGE, LISTEN_OPTION " '%.300s'", place);
	if (port) {
		because(refusal, "it does not say at which address");
		return instead(refusal,
			       "127.0.0.1:%s for programs on this machine; " LISTEN_PUBLIC
			       "tcp:0.0.0.0:%s for everyone who reaches it",
			       port, port);
	}
	if (is_name_and_port(place)) {
		because(refusal, "a host's name that has to be looked up needs its kind");
		return instead(refusal,
			       "tcp:%.300s, or " LISTEN_PUBLIC "tcp:%.300s if other machines reach it", place,
			       place);
	}
	because(refusal, "it is neither a socket's path nor a host and port");
	return instead(refusal, "write unix:PATH, 127.0.0.1:PORT or tcp:[ADDRESS]:PORT");
}

/* Parses a place. An address that other machines can reach is refused without LISTEN_PUBLIC. */
static int read_place(struct address *address, const char *place, struct refusal *refusal)
{
	bool public = !strncmp(place, LISTEN_PUBLIC "tcp:", strlen(LISTEN_PUBLIC "tcp:"));
	char *whole = xasprintf("%s%s", is_host_and_port(place) ? "tcp:" : "",
				place + (public ? strlen(LISTEN_PUBLIC) : 0));
	int err = address_is(whole) ? address_read(address, LISTEN_OPTION, whole, refusal)
				    : refuse_kindless(place, refusal);

	if (!err && !public && !address_is_local(address)) {
		refuse(refusal, STATUS_USAGE, LISTEN_OPTION " '%.300s'", place);
		because(refusal, "other machines reach this address, and everyone who asks is answered");
		err = instead(refusal,
			      "choose unix:PATH or tcp:127.0.0.1:PORT, or write " LISTEN_PUBLIC "%.300s",
			      whole);
	}
	free(whole);
	return err;
}

/* Port 0 lets the kernel choose one, which nobody else could know. */
static void tell_port(int fd, const struct address *address)
{
	struct sockaddr_storage bound = {0};
	socklen_t size = sizeof(bound);
	char host[NI_MAXHOST], port[NI_MAXSERV];

	/* The port is at the same place for both families. */
	if (address_path(address) || ((const struct sockaddr_in *)&address->socket)->sin_port)
		return;
	if (!getsockname(fd, (struct sockaddr *)&bound, &size) &&
	    !getnameinfo((struct sockaddr *)&bound, size, host, sizeof(host), port, sizeof(port),
			 NI_NUMERICHOST | NI_NUMERICSERV))
		say(bound.ss_family == AF_INET6 ? "nhmtap: listening at [%s]:%s"
						: "nhmtap: listening at %s:%s",
		    host, port);
}

/* Returns a socket that listens, or -1 with errno set. */
static int open_socket(const struct address *address, struct socket_file *file)
{
	int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
	const int silent_s = 3;
	int err, error;

	if (fd < 0)
		return -1;
	if (!address_path(address))
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* The kernel keeps those that have connected and say nothing, so that they take no place from who is
	 * about to ask something. Fails on unix sockets. */
	setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent_s, sizeof(silent_s));
	err = address_path(address) ? bind_unix(fd, address, file)
				    : bind(fd, (const struct sockaddr *)&address->socket, address->length);
	if (!err)
		err = listen(fd, SOMAXCONN);
	if (!err)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int listen_check(const char *option, const char *value, struct refusal *refusal)
{
	return late_need(&libmicrohttpd, option, value, refusal);
}

int listen_open(struct listen **opened, const char *place, struct session *session, struct refusal *refusal)
{
	const union MHD_DaemonInfo *info;
	struct socket_file file = {0};
	struct address address;
	struct listen *listen;
	const char *path;
	int fd;

	if (!place)
		return 0;
	if (listen_check(LISTEN_OPTION, place, refusal))
		return -1;
	if (read_place(&address, place, refusal))
		return -1;
	path = address_path(&address);
	fd = open_socket(&address, &file);
	if (fd < 0)
		return refuse_listen(refusal, place,
				     path && errno == EADDRINUSE
					     ? "choose another path: only a socket at which "
					       "nobody listens is replaced"
				     : errno == ETIMEDOUT ? "choose another path"
							  : "free the address, or choose another");
	listen = xcalloc(1, sizeof(*listen));
	*listen = (struct listen){
		.session = session, .fd = fd, .path = path ? xstrdup(path) : NULL, .file = file};
	for (size_t i = 0; i < CONNECTIONS_MOST; i++)
		listen->connections[i].fd = -1;
	*opened = listen;
	listen->daemon =
		MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, listen,
				 MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MOST, MHD_OPTION_CONNECTION_TIMEOUT,
				 SILENT_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection, listen,
				 MHD_OPTION_NOTIFY_COMPLETED, on_answered, listen, MHD_OPTION_END);
	if (!listen->daemon)
		return refuse_listen(refusal, place, "raise the limits of descriptors (ulimit -n) or memory");
	info = MHD_get_daemon_info(listen->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	listen->ready = loop_watch(session->loop, info->epoll_fd, POLLIN, on_ready, listen);
	listen->coming = loop_watch(session->loop, fd, POLLIN, on_coming, listen);
	note("listening at %s", place);
	tell_port(fd, &address);
	return 0;
}

/* Removes the socket's file, unless another server has put its own there. */
static void remove_file(const struct listen *listen)
{
	struct stat now;

	if (!lstat(listen->path, &now) && now.st_dev == listen->file.device &&
	    now.st_ino == listen->file.inode)
		unlink(listen->path);
}

static void remove_apart(int socket, const void *context)
{
	struct socket_file done = {0};

	remove_file(context);
	packet_send(socket, (struct iovec[]){{&done, sizeof(done)}}, 1, -1);
}

static void remove_socket(const struct listen *listen)
{
	struct socket_file done;
	int none;

	if (listen->path &&
	    apart_once(FILE_NAME, remove_apart, listen, -1, &done, sizeof(done), &none, LAST_NS) == EAGAIN)
		remove_file(listen);
}

void listen_close(struct listen *listen)
{
	if (!listen)
		return;
	loop_remove(listen->session->loop, &listen->coming);
	loop_remove(listen->session->loop, &listen->ready);
	loop_remove(listen->session->loop, &listen->due);
	loop_remove(listen->session->loop, &listen->pause);
	if (listen->daemon)
		MHD_stop_daemon(listen->daemon);
	close(listen->fd);
	remove_socket(listen);
	free(listen->path);
	free(listen);
}
