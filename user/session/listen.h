/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a session answers when it is asked by HTTP: pages, each at a path. It has no authentication and no
 * encryption, so it is a unix socket or a loopback address unless told otherwise.
 */
#ifndef NHMTAP_LISTEN_H
#define NHMTAP_LISTEN_H

#include "output/text.h"
#include "refusal.h"

struct session;
struct listen;

#define LISTEN_OPTION "option --listen" /* as messages name it */

/* A page is a row in the file that answers. */
struct page {
	const char *path; /* "/healthz" */
	/* Adds what it says, and sets *type where that is no plain text; returns the status of HTTP. Called
	 * by the loop: nothing may wait. */
	unsigned int (*answer)(struct session *session, struct text *body, const char **type);
};

#define REGISTER_PAGE(item)                                                                                  \
	static const struct page *const registered_##item __attribute__((section("pages"), used)) = &(item)

/* What lets other machines ask as well: "public-tcp:HOST:PORT". */
#define LISTEN_PUBLIC "public-"

/* Listens at "unix:PATH", "tcp:HOST:PORT" where that is loopback, or "public-tcp:HOST:PORT", by the session's
 * loop, up to listen_close(); a NULL place is nothing. A socket that was left behind at PATH, and at which
 * nobody listens, is replaced. Returns 0, or -1 with the refusal. */
int listen_open(struct listen **listen, const char *place, struct session *session, struct refusal *refusal);

/* Ends what is being answered, and removes the socket. NULL is nothing. */
void listen_close(struct listen *listen);

#endif
