/* SPDX-License-Identifier: GPL-2.0-only */
/* Validation of the tables in events/ by events/schema.json. Of JSON Schema (2020-12) it supports the
 * keywords that are used there. */
#ifndef NHMTAP_FORM_H
#define NHMTAP_FORM_H

#include <jansson.h>

struct form;

/* Opens the schema that is built into the program. It is read once and shared: each caller must call
 * form_close(). */
struct form *form_open(void);
void form_close(struct form *form);

struct form_fault {
	char label[128]; /* the entry's name, or "entry 3"; "" if the fault is in the table itself */
	char what[300];	 /* "\"umask\" is missing" */
};

/* Validates a table by the schema of its kind, a key of $defs: "events", "metrics", …. Returns 0, or -1 with
 * the first fault. */
int form_check(struct form *form, const char *kind, const json_t *table, struct form_fault *fault);

#endif
