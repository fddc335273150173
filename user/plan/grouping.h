/* SPDX-License-Identifier: GPL-2.0-only */
/* Forms groups from lists of events that need more counters than there are. The kernel schedules the groups
 * in turns, and the events of a group are counted at the same time. Pure. */
#pragma once

#include "event/event.h"
#include "host/host.h"

/*
 * If the list does not fit the counters as a whole, forms groups of neighbouring events that the user left
 * ungrouped, in their order, each of as many events as fit. Does nothing if the CPU is not known, because a
 * group that never fits is worse than none.
 */
void grouping_form(struct events *events, struct host *host);

/* Notes in each event the counter that it gets when its group is scheduled (or always, if everything fits).
 * It is one possible assignment; the kernel may choose another. */
void grouping_place(struct events *events, struct host *host);
