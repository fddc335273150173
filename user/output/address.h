/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a socket connects to, or listens: "unix:PATH" or "tcp:HOST:PORT". */
#ifndef NHMTAP_ADDRESS_H
#define NHMTAP_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "refusal.h"

struct address {
	struct sockaddr_storage socket;
	socklen_t length;
};

/* Whether a place is one of these, and no file. */
bool address_is(const char *place);

/* Reads an address; a host's name is looked up, once. asked: the option that has it. Returns 0, or -1 with
 * the refusal. */
int address_read(struct address *address, const char *asked, const char *place, struct refusal *refusal);

/* Whether only programs of this machine can reach it: a unix socket, or loopback. */
bool address_is_local(const struct address *address);

/* The path of a unix socket's address, NULL if it is none. */
const char *address_path(const struct address *address);

/* A socket that is connected, or about to be: what is sent before waits, or fails as connecting did.
 * Returns -1 with errno set where it failed already. */
int address_connect(const struct address *address);

#endif
