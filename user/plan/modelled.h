/* SPDX-License-Identifier: GPL-2.0-only */
/* Events that the emulated machine does not model: it counts nothing for them. */
#pragma once

#include "event/event.h"
#include "host/host.h"

/* Sets `never` of events that this machine does not model, and a note on those of whose umask it models a
 * part. Does nothing on any other machine. */
void modelled_settle(struct events *events, struct host *host);
