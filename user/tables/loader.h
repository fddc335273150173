/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions shared by the parts of tables.h, to read a file and to report the place of a fault.
 *
 *     tables.c   folders and CPUs    rows.c    the rows of one CPU's tables
 *     loader.c   files and faults    checks.c  consistency of the rows
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <jansson.h>

#include "base/json_schema.h"
#include "base/refusal.h"
#include "tables/draft.h"

#define GENERIC "generic" /* the folder of metrics over perf's own events */

struct loader {
	char folder[PATH_MAX];
	char file[PATH_MAX]; /* the file that is being read, relative to the folder */
	struct json_schema *schema;
	struct refusal *refusal;
	json_t *documents; /* everything that was read; rows point to strings in it */
	json_t *sources;   /* keys of sources that tables may quote */
	struct draft **drafts;
	size_t nr_drafts;
	struct draft generic; /* has metrics only */
	void **blocks;	      /* arrays to which rows point */
	size_t nr_blocks;
};

/* Refuses the folder because of a fault in an entry of a file. `label` is the entry's name, "" for the file
 * itself. Returns -1. */
int loader_fault(struct loader *loader, const char *file, const char *label, const char *what, ...)
	__attribute__((format(printf, 4, 5)));
#define FAULT(loader, label, ...) loader_fault(loader, (loader)->file, label, __VA_ARGS__)
/* The same for a row of a draft: in the file from which the name was read. */
#define FAULT_OF(loader, draft, name, ...) loader_fault(loader, draft_file_of(draft, name), name, __VA_ARGS__)

/* Records that a name in the draft is from the file that is being read. */
void draft_note_file(struct loader *loader, struct draft *draft, const char *name);
/* The file from which a name is; if it is built in, the CPU's name. */
const char *draft_file_of(const struct draft *draft, const char *name);
bool draft_is_from_folder(const struct draft *draft, const char *name);

/* The tables of a CPU that the folder has defined so far, or of a built-in one; NULL if there is none. */
const struct cpu_events *loader_find_cpu(const struct loader *loader, const char *name);

/* Whether the folder has this file. It becomes the file that is being read. */
bool loader_has_file(struct loader *loader, const char *file);
/* Reads the file, which must be a valid table of this kind. Returns NULL with the refusal on failure. The
 * loader owns the result. */
json_t *loader_read_table(struct loader *loader, const char *kind);
/* Allocates a zeroed array, which lives as long as the tables. */
void *loader_keep(struct loader *loader, size_t nr, size_t size);

/* Checks that the sources exist which an entry, or a table, quotes. */
int entry_check_sources(struct loader *loader, const char *label, const json_t *entry);
/* Checks that no two entries have the same value of the field `key`, which names them, and that all sources
 * they quote exist. */
int entries_check(struct loader *loader, const json_t *entries, const char *key);

/* Members of an entry. */
const char *entry_text(const json_t *entry, const char *field); /* NULL if it is missing */
json_int_t entry_number(const json_t *entry, const char *field, json_int_t otherwise);
__u64 entry_hex(const json_t *entry, const char *field); /* 0 if it is missing */
bool entry_flag(const json_t *entry, const char *field);
__u64 entry_config(const json_t *entry); /* code, umask, flags and cmask, as in perf_event_attr.config */

/* Reads the current file, a table of a CPU, into the CPU's draft. `stem` is its name without ".json". */
int draft_load_table(struct loader *loader, struct draft *draft, const char *stem);

/* Checks the rows of a sealed draft against each other. */
int draft_check(struct loader *loader, struct draft *draft);
