/* SPDX-License-Identifier: GPL-2.0-only */
/* The session's HTTP server: pages, each at a path. It has no authentication and no encryption, so it listens
 * only at a unix socket or a loopback address, unless told otherwise. */
#pragma once

#include "base/refusal.h"
#include "output/text.h"

struct session;
struct listen;

#define LISTEN_OPTION "option --listen" /* its name in messages */

/* Statuses of HTTP (RFC 9110). */
enum page_status {
	PAGE_OK = 200,
	PAGE_NONE = 404,
	PAGE_NOT_YET = 503,
};

/* A page. It is registered by the file that answers it. */
struct page {
	const char *path; /* "/healthz" */
	/* Adds the page's text to `body`, and sets *type if it is not plain text. Returns the HTTP status.
	 * Called by the loop, so it must not block. */
	unsigned int (*answer)(struct session *session, struct text *body, const char **type);
};

#define REGISTER_PAGE(item)                                                                                  \
	static const struct page *const registered_##item __attribute__((section("pages"), used)) = &(item)

/* Prefix that allows an address that other machines can reach: "public-tcp:HOST:PORT". */
#define LISTEN_PUBLIC "public-"

/*
 * Listens at "unix:PATH", "tcp:HOST:PORT" (loopback only; "tcp:" may be left out) or "public-tcp:HOST:PORT",
 * by the session's loop, until listen_close(). If `place` is NULL, nothing is done. A socket at PATH that a
 * former process has left behind is replaced; anything else there is not. Returns 0, or -1 with the refusal.
 */
int listen_open(struct listen **listen, const char *place, struct session *session, struct refusal *refusal);

/* Refuses an option with its value if this program can't listen at all: it was built without libmicrohttpd,
 * or that is not installed. Returns 0, or -1 with the refusal. */
int listen_check(const char *option, const char *value, struct refusal *refusal);

/* Closes all connections, and removes the socket's file if it is still this one's. NULL is allowed. */
void listen_close(struct listen *listen);
