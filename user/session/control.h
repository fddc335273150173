/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands to a running session: lines from a FIFO, as with perf's --control. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/refusal.h"

struct control {
	int fd, ack_fd; /* -1: none */
	char line[128]; /* the part of a line received so far */
	size_t used;
	bool ended; /* all writers have closed it */
};

enum control_command {
	CONTROL_NOTHING, /* no complete command yet */
	CONTROL_UNKNOWN, /* reported on stderr; not acknowledged */
	CONTROL_ENABLE,
	CONTROL_DISABLE,
	CONTROL_SNAPSHOT,
	CONTROL_PING,
	CONTROL_STOP,
};

/* Opens "fifo:CTL[,ACK]" or "fd:CTL[,ACK]"; NULL: opens nothing. A FIFO is also opened for writing, so that
 * it does not end when a writer closes it. Returns 0, or -1 with the refusal. */
int control_open(struct control *control, const char *text, struct refusal *refusal);
void control_close(struct control *control);

/* Reads the next command; never blocks. *activity is the name of the activity that it is for, which is the
 * second word of the line; "" for all. It is valid until the next call. */
enum control_command control_next(struct control *control, const char **activity);

/* Acknowledges a command: writes "ack" if there is a descriptor for it. */
void control_acknowledge(const struct control *control);
