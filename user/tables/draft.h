/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A CPU's tables while they are being put together: rows that can be added, replaced and taken away
 * by name. Sealed, it is a struct cpu_events.
 */
#ifndef NHMTAP_DRAFT_H
#define NHMTAP_DRAFT_H

#include <stdbool.h>
#include <jansson.h>

#include "tables/known_event.h"

/* Rows begin with their name, but for data sources, rules and models, which have none. An alias may
 * stand twice, of two owners: that is a fault, to be found out. */
enum draft_kind {
	DRAFT_EVENTS,
	DRAFT_ALIASES,
	DRAFT_REGISTERS,
	DRAFT_REQUESTS,
	DRAFT_RESPONSES,
	DRAFT_PRESETS,
	DRAFT_OFFCORE_ALIASES,
	DRAFT_CONTRADICTIONS,
	DRAFT_METRICS,
	DRAFT_DATA_SOURCES,
	DRAFT_BRANCHES,
	DRAFT_UNITS,
	DRAFT_PRECISE,
	DRAFT_PLACED,
	DRAFT_GENERIC,
	DRAFT_ERRATA,
	DRAFT_MICROCODE,
	DRAFT_MODELS,
	DRAFT_GUIDE,
	DRAFT_KINDS
};

struct draft {
	struct cpu_events cpu; /* valid once sealed, but for its scalars, which always are */
	struct known_offcore offcore;
	struct known_kernel kernel;
	struct rows {
		char *bytes;
		size_t nr, room;
		size_t inherited; /* the first of them are another CPU's */
		__u32 *found; /* numbers of rows, from 1, by their names; NULL: not made, or no longer right
			       */
		size_t nr_found; /* places in it, a power of two */
	} rows[DRAFT_KINDS];
	json_t *files; /* for a name that the folder has: the file it stands in */
};

/* A draft that begins with a copy of another CPU's tables; base may be NULL. */
void draft_begin(struct draft *draft, const struct cpu_events *base);
void draft_release(struct draft *draft);

void *draft_row(const struct draft *draft, enum draft_kind kind, size_t i);
/* The row of a name, as known_event_find() compares them; NULL if there is none. */
void *draft_find(struct draft *draft, enum draft_kind kind, const char *name);
/* Adds a copy of a row; one of the same name gives way to it, where rows have names. */
void draft_put(struct draft *draft, enum draft_kind kind, const void *row);
/* Takes a row away. Returns whether there was one. */
bool draft_drop(struct draft *draft, enum draft_kind kind, const char *name);
/* Takes the aliases away that a name has inherited. */
void draft_drop_aliases(struct draft *draft, enum draft_kind kind, const char *of);
void draft_clear(struct draft *draft, enum draft_kind kind);

/* Sorts the rows as lookups need them and lets cpu point at them. */
void draft_seal(struct draft *draft);

#endif
