// SPDX-License-Identifier: GPL-2.0-only
#include "session/listen.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <microhttpd.h>

#include "clock.h"
#include "late.h"
#include "memory.h"
#include "note.h"
#include "output/address.h"
#include "session/loop.h"
#include "session/session.h"

/* The most connections at the same time: more than any scraper and probe need. Connections that are silent
 * for SILENT_S seconds are closed. */
#define CONNECTIONS_MOST 32
#define SILENT_S	 10

#define PLAIN "text/plain; charset=utf-8"

struct listen {
	struct session *session;
	struct MHD_Daemon *daemon;
	struct source *ready, *due;
	char *path; /* path of the socket; NULL if it is not a unix socket */
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

static void serve(struct listen *listen)
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
	serve(listen);
}

static void on_ready(void *context, short events)
{
	serve(context);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int refuse_listen(struct refusal *refusal, const char *place, const char *next)
{
	refuse(refusal, STATUS_USAGE, LISTEN_OPTION " '%.300s'", place);
	refusal->error = errno;
	because(refusal, "%s", strerror(errno));
	return instead(refusal, "%s", next);
}

/* Whether nobody listens at the socket: a run that was killed has left it behind. */
static bool is_left_behind(const struct address *address)
{
	int fd = address_connect(address);

	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == ECONNREFUSED;
}

/* Binds the unix socket. Only nhmtap's user and group may connect, because pages can name what other programs
 * run. */
static int bind_unix(int fd, const struct address *address, const char *path)
{
	mode_t mask = umask(0117);
	int err = bind(fd, (const struct sockaddr *)&address->socket, address->length);

	if (err && errno == EADDRINUSE) {
		if (is_left_behind(address) && !unlink(path))
			err = bind(fd, (const struct sockaddr *)&address->socket, address->length);
		else
			errno = EADDRINUSE;
	}
	umask(mask);
	return err;
}

/* Parses a place. An address that other machines can reach is refused without LISTEN_PUBLIC. */
static int read_place(struct address *address, const char *place, struct refusal *refusal)
{
	bool public = !strncmp(place, LISTEN_PUBLIC "tcp:", strlen(LISTEN_PUBLIC "tcp:"));

	if (address_read(address, LISTEN_OPTION, place + (public ? strlen(LISTEN_PUBLIC) : 0), refusal))
		return -1;
	if (public || address_is_local(address))
		return 0;
	refuse(refusal, STATUS_USAGE, LISTEN_OPTION " '%.300s'", place);
	because(refusal, "other machines reach this address, and everyone who asks is answered");
	return instead(refusal, "choose unix:PATH or tcp:127.0.0.1:PORT, or write " LISTEN_PUBLIC "%.300s",
		       place);
}

/* Returns a socket that listens, or -1 with errno set. */
static int open_socket(const struct address *address, const char *path)
{
	int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
	int err, error;

	if (fd < 0)
		return -1;
	if (!path)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	err = path ? bind_unix(fd, address, path)
		   : bind(fd, (const struct sockaddr *)&address->socket, address->length);
	if (!err)
		err = listen(fd, CONNECTIONS_MOST);
	if (!err)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int listen_open(struct listen **opened, const char *place, struct session *session, struct refusal *refusal)
{
	const union MHD_DaemonInfo *info;
	struct address address;
	struct listen *listen;
	const char *path;
	const char *why;
	int fd;

	if (!place)
		return 0;
	why = late_libmicrohttpd();
	if (why) {
		refuse(refusal, STATUS_REFUSED, LISTEN_OPTION " '%.300s'", place);
		because(refusal, "%s", why);
		return instead(refusal, "install libmicrohttpd: apt-get install libmicrohttpd12");
	}
	if (read_place(&address, place, refusal))
		return -1;
	path = address_path(&address);
	fd = open_socket(&address, path);
	if (fd < 0)
		return refuse_listen(refusal, place, "free the address, or choose another");
	listen = xcalloc(1, sizeof(*listen));
	*listen = (struct listen){.session = session, .path = path ? xstrdup(path) : NULL};
	*opened = listen;
	listen->daemon =
		MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, listen, MHD_OPTION_LISTEN_SOCKET,
				 fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MOST,
				 MHD_OPTION_CONNECTION_TIMEOUT, SILENT_S, MHD_OPTION_END);
	if (!listen->daemon) {
		close(fd);
		return refuse_listen(refusal, place, "raise the limits of descriptors (ulimit -n) or memory");
	}
	info = MHD_get_daemon_info(listen->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	listen->ready = loop_watch(session->loop, info->epoll_fd, POLLIN, on_ready, listen);
	note("listening at %s", place);
	return 0;
}

void listen_close(struct listen *listen)
{
	if (!listen)
		return;
	loop_remove(listen->session->loop, &listen->ready);
	loop_remove(listen->session->loop, &listen->due);
	if (listen->daemon)
		MHD_stop_daemon(listen->daemon); /* closes the socket as well */
	if (listen->path)
		unlink(listen->path);
	free(listen->path);
	free(listen);
}
