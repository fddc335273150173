/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of tables.h share: reading a file, naming the place of a fault.
 *
 *     tables.c   folders and CPUs    rows.c    the rows of one CPU's tables
 *     loader.c   files and faults    checks.c  what they mean together
 */
#ifndef NHMTAP_LOADER_H
#define NHMTAP_LOADER_H

#include <limits.h>
#include <stdbool.h>
#include <jansson.h>

#include "tables/draft.h"
#include "tables/form.h"
#include "refusal.h"

#define GENERIC "generic" /* the folder of metrics over perf's own events */

struct loader {
	char folder[PATH_MAX];
	char file[PATH_MAX]; /* that is being read, below the folder */
	struct form *form;
	struct refusal *refusal;
	json_t *documents; /* all that was read: strings point into it */
	json_t *sources;   /* the keys that may be quoted */
	struct draft **drafts;
	size_t nr_drafts;
	struct draft generic; /* has metrics alone */
	void **blocks;	      /* arrays that rows point at */
	size_t nr_blocks;
};

/* Refuses the folder for a fault of a file's entry (label, "" for the file itself). Returns -1. */
int fault_in(struct loader *loader, const char *file, const char *label, const char *what, ...)
	__attribute__((format(printf, 4, 5)));
#define FAULT(loader, label, ...) fault_in(loader, (loader)->file, label, __VA_ARGS__)
/* The same of what a draft came to be: in the file that the name was read from. */
#define FAULT_OF(loader, draft, name, ...) fault_in(loader, file_of(draft, name), name, __VA_ARGS__)

/* A name in the draft now comes from the file that is being read. */
void note_file(struct loader *loader, struct draft *draft, const char *name);
/* The file that a name comes from; the CPU's name, if it is built in. */
const char *file_of(const struct draft *draft, const char *name);
bool from_folder(const struct draft *draft, const char *name);

/* The tables of a CPU that the folder has defined so far, or that is built in; NULL: there is none. */
const struct cpu_events *find_cpu(const struct loader *loader, const char *name);

/* Whether the folder has this file, which is then the one to be read. */
bool file_exists(struct loader *loader, const char *file);
/* The file as a table of this kind, right in its form; NULL with the refusal. The loader owns it. */
json_t *read_table(struct loader *loader, const char *kind);
/* A zeroed array that lives as long as the tables. */
void *keep(struct loader *loader, size_t nr, size_t size);

/* The sources that an entry, or a table, quotes exist. */
int check_sources(struct loader *loader, const char *label, const json_t *entry);
/* No entry stands twice, by the field that names them, and all quote sources that there are. */
int check_entries(struct loader *loader, const json_t *entries, const char *key);

/* Members of an entry. */
const char *text(const json_t *entry, const char *field); /* NULL if it is left out */
json_int_t number(const json_t *entry, const char *field, json_int_t otherwise);
__u64 hexadecimal(const json_t *entry, const char *field); /* 0 if it is left out */
bool flag(const json_t *entry, const char *field);
__u64 config_of(const json_t *entry); /* code, umask, flags and cmask as perf_event_attr has them */

/* Reads the file that is a table of a CPU into its draft; stem: its name without ".json". */
int load_table(struct loader *loader, struct draft *draft, const char *stem);

/* What the rows of a sealed draft mean together. */
int check_draft(struct loader *loader, struct draft *draft);

#endif
