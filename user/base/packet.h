/* SPDX-License-Identifier: GPL-2.0-only */
/* Messages between processes, each with at most one descriptor: packets of a socket (SOCK_SEQPACKET). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/* Sends the parts as one message, with a descriptor, or -1 for none. The caller keeps the descriptor. Returns
 * whether the whole message was sent. */
bool packet_send(int socket, struct iovec *parts, size_t nr, int fd);

/*
 * Waits for a message of at most `most` bytes. Returns its size; 0 if there is none, or if it was truncated.
 * Sets *fd to the descriptor that came with it, which the caller owns even if 0 is returned; -1: none came;
 * FD_CUT: it could not be received, because the descriptor limit was reached or several were sent.
 */
#define FD_CUT (-2)
size_t packet_receive(int socket, void *bytes, size_t most, int *fd);
