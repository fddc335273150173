/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU's tables under construction: rows can be added, replaced and removed by name. When sealed, it is a
 * struct cpu_events. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "tables/known_event.h"

/* The first member of a row is its name, except for data sources, rules and models, which have no names.
 * There may be two rows of an alias, with different owners: that is a fault, which is detected later. */
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
	DRAFT_SHARES,
	DRAFT_IDENTITIES,
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
	DRAFT_PROCESSORS,
	DRAFT_KINDS
};

struct draft {
	struct cpu_events cpu; /* its arrays are valid once sealed, its scalars always */
	struct known_offcore offcore;
	struct known_kernel kernel;
	struct rows {
		char *bytes;
		size_t nr, room;
		size_t inherited; /* number of inherited rows; they come first */
		__u32 *found;	  /* hash table of rows by name: index + 1, 0: free. NULL: to be made anew */
		size_t nr_found;  /* size of the hash table, a power of two */
	} rows[DRAFT_KINDS];
	json_t *files; /* file of each name that the folder has */
};

/* Starts a draft with a copy of another CPU's tables; `base` may be NULL. */
void draft_begin(struct draft *draft, const struct cpu_events *base);
void draft_release(struct draft *draft);

void *draft_row(const struct draft *draft, enum draft_kind kind, size_t i);
/* The row of a name, compared as by known_event_find(); NULL if there is none. */
void *draft_find(struct draft *draft, enum draft_kind kind, const char *name);
/* Adds a copy of a row. For kinds that have names, it replaces a row of the same name. */
void draft_put(struct draft *draft, enum draft_kind kind, const void *row);
/* Removes a row. Returns whether there was one. */
bool draft_drop(struct draft *draft, enum draft_kind kind, const char *name);
/* Removes the aliases that a name has inherited. */
void draft_drop_aliases(struct draft *draft, enum draft_kind kind, const char *of);
void draft_clear(struct draft *draft, enum draft_kind kind);

/* Sorts the rows, as lookups require, and makes `cpu` point to them. */
void draft_seal(struct draft *draft);
