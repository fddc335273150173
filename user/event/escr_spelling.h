/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libpfm4's spelling of the events of units with ESCRs (NetBurst), made into this program's terms:
 *
 *     global_power_events:RUNNING:cmpl:thr=8:u   global_power_events,running,t0=usr,complement,threshold=8
 *     IOQ_allocation:TYPE_BIT0:TYPE_BIT2         ioq_allocation,type=0x5
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tables/known_event.h"

/* Writes the terms for unit_event(). A piece that is none of libpfm4's becomes a term as it is, and
 * unit_event() refuses it. `two_threads` as there. Returns false if the text does not begin with a kind of
 * event of this unit, or the terms would be too long. */
bool escr_spelled(const struct known_unit *unit, bool two_threads, const char *text, size_t length,
		  char *terms, size_t size);
