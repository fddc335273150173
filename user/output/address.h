/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses of sockets to connect to or to listen on: "unix:PATH" or "tcp:HOST:PORT". */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "base/refusal.h"

struct address {
	struct sockaddr_storage socket;
	socklen_t length;
};

/* Whether a place is such an address; otherwise it is the path of a file. */
bool address_is(const char *place);

/* Whether a place is a URL (http:// or https://). */
bool address_is_url(const char *place);

/* Refuses what is no place of these and looks like a URL: it is a mistake rather than a file's name. Returns
 * 0, or -1 with the refusal. */
int address_check_file(const char *asked, const char *path, struct refusal *refusal);

/* Parses an address, which address_is(). A host name is resolved once, here; without `address` (NULL) it is
 * only checked how the address is written. `asked` is the option that gave the address, for the message.
 * Returns 0, or -1 with the refusal. */
int address_read(struct address *address, const char *asked, const char *place, struct refusal *refusal);

/* From now on, names are looked up for 1.5 s at most, because a session is running. */
void address_hurry(void);

/* Whether only programs on this machine can connect: true for a unix socket and for loopback. */
bool address_is_local(const struct address *address);

/* The path of a unix socket, borrowed from the address; NULL for TCP. */
const char *address_path(const struct address *address);

/* Starts to connect, without waiting, and returns a non-blocking socket; the caller closes it. A failure that
 * shows later is returned by the first write(2). Returns -1 with errno set if connecting failed at once. */
int address_connect(const struct address *address);

/* A process that connects a unix socket whose file system may not answer. */
struct joining;

/* The same, but leaves what may wait to a process, and waits for that for `wait_ns`. Fails with ETIMEDOUT if
 * it takes longer: *joining is set then, and the next call goes on with it. It is NULL at first, and NULL
 * otherwise. */
int address_join(const struct address *address, struct joining **joining, unsigned long long wait_ns);

/* Gives up what is under way; NULL: nothing. */
void address_part(struct joining *joining);
