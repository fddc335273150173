/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The form of the tables in events/: events/schema.json. Of JSON Schema
 * (2020-12) it knows the keywords that are used there.
 */
#ifndef NHMTAP_FORM_H
#define NHMTAP_FORM_H

#include <jansson.h>

struct form;

/* The form that is built into the program. It is read once and shared by all that have it open: each calls
 * form_close() when it needs it no longer. */
struct form *form_open(void);
void form_close(struct form *form);

struct form_fault {
	char label[128]; /* the entry's name, or "entry 3"; "" if it is the table's own */
	char what[300];	 /* "\"umask\" is missing" */
};

/* Holds a table against the form of its kind, a key of the schema's $defs: "events", "metrics", ….
 * Returns 0, or -1 with the first fault. */
int form_check(struct form *form, const char *kind, const json_t *table, struct form_fault *fault);

#endif
