/* SPDX-License-Identifier: GPL-2.0-only */
/* Validates what users write, the tables in events/ and CONFIG, by the JSON Schemas that are built into the
 * program. Of JSON Schema (2020-12) it supports the keywords that these use. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

struct json_schema;

/* Opens a schema that is built into the program, "config.schema.json". It is read once and shared: each
 * caller must call json_schema_close(). */
struct json_schema *json_schema_open(const char *file);
void json_schema_close(struct json_schema *schema);

/* The schema itself, borrowed. Who completes it does so before the first check. */
json_t *json_schema_document(struct json_schema *schema);

enum json_fault_kind {
	FAULT_VALUE,   /* a value of another kind: `takes` says what belongs there */
	FAULT_UNKNOWN, /* a member that there is not: `takes` has those that there are */
	FAULT_MISSING, /* a member that has to be there: `takes` says what belongs there */
	FAULT_OTHER,   /* `takes` says what is wrong: "has an entry twice" */
};

#define POINTER_MOST 400

struct json_fault {
	enum json_fault_kind kind;
	char pointer[POINTER_MOST]; /* where, RFC 6901: "/events/3/umask"; "" is the whole */
	char takes[300];
	char value[64]; /* the beginning of the value that is there, as JSON */
	char near[200]; /* names like the one that is there, which may have been meant; "": none */
};

/* Validates a value by a definition, a key of $defs, or by the whole schema (NULL). `passed` is an object
 * whose keys are pointers to faults that are known, and are passed over; NULL: none. Returns 0, or -1 with
 * the first other fault. */
int json_schema_check(struct json_schema *schema, const char *definition, const json_t *value,
		      const json_t *passed, struct json_fault *fault);

/* Writes a JSON pointer to a member, or to an element by its number. Returns the buffer. */
const char *json_pointer_below(char *buffer, size_t size, const char *pointer, const char *member);

/* Takes the first name of a pointer, and moves the pointer behind it. Returns whether there was one. */
bool json_pointer_next(const char **pointer, char *name, size_t size);
