/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands to a running session: lines from a FIFO, as with perf's --control. */
#ifndef NHMTAP_CONTROL_H
#define NHMTAP_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "refusal.h"

struct control {
	int fd, ack_fd; /* -1: none */
	char line[128]; /* that has begun */
	size_t used;
	bool ended; /* it has no writer any more */
};

enum control_command {
	CONTROL_NOTHING, /* that is whole yet */
	CONTROL_UNKNOWN, /* reported on stderr; not acknowledged */
	CONTROL_ENABLE,
	CONTROL_DISABLE,
	CONTROL_SNAPSHOT,
	CONTROL_PING,
	CONTROL_STOP,
};

/* Opens "fifo:CTL[,ACK]" or "fd:CTL[,ACK]"; NULL: nothing is opened. A FIFO is opened for writing too,
 * so that it has no end when a writer goes. Returns 0, or -1 with the refusal. */
int control_open(struct control *control, const char *text, struct refusal *refusal);
void control_close(struct control *control);

/*
 * The next command that has come in; the descriptor is not waited for. *activity is the name of the
 * activity that it is for, "" for all: the line's second word. Valid up to the next call.
 */
enum control_command control_next(struct control *control, const char **activity);

/* Acknowledges a command: writes "ack" if there is a FIFO for it. */
void control_acknowledge(const struct control *control);

#endif
