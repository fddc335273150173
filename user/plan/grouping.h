/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists of events that are too long for the counters, gathered into groups that fit: the kernel then
 * turns from one group to the next, and what is in one group was counted at the same time. Pure.
 */
#ifndef NHMTAP_GROUPING_H
#define NHMTAP_GROUPING_H

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

#endif
