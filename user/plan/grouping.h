/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists of events that are too long for the counters, gathered into groups that fit: the kernel then
 * turns from one group to the next, and what is in one group was counted at the same time. Pure.
 */
#ifndef NHMTAP_GROUPING_H
#define NHMTAP_GROUPING_H

#include "event/event.h"
#include "host/host.h"

/* Makes groups of neighbours in the list that the user left ungrouped, in their order, each of as many
 * as fit, where the list as a whole does not. Nothing is done where the CPU is not known: a group that
 * never fits is worse than none. */
void grouping_form(struct events *events, struct host *host);

/* Notes in each event the counter that it takes when its group has its turn, or, where everything fits
 * at once, all the time. The kernel may choose another one of those that it can take; this is one way
 * in which it works out. */
void grouping_place(struct events *events, struct host *host);

#endif
