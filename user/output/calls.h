/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks as the formats write them: the frames of records, by name. */
#ifndef NHMTAP_CALLS_H
#define NHMTAP_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

/* Commands whose records have stacks: see struct format. */
#define COMMANDS_OF_STACKS "profile,mem,branch"

/* The frames that the stacks of the records to come are made of. Starts as {0}. */
struct calls {
	json_t *defined; /* the record of type frames; its parts joined */
};

/* Takes in a record of type frames: it takes the place of the one before, or is a further part of it.
 * The record is not kept. */
void calls_define(struct calls *calls, const json_t *frames);
void calls_release(struct calls *calls);

/* A frame by its id, NULL if it was not defined. */
const json_t *calls_frame(const struct calls *calls, json_int_t id);

/* A function that a frame stands for. What was inlined into it comes first. */
struct call {
	const json_t *frame;
	const char *symbol; /* NULL: not known */
	const char *file;   /* source file, NULL: not known */
	json_int_t line;    /* 0: not known */
	bool inlined;	    /* into the next one */
};

/* How many functions a frame stands for: at least one. */
size_t calls_in(const json_t *frame);
struct call calls_at(const json_t *frame, size_t i);

bool calls_of_kernel(const json_t *frame);

/* "main", "libc.so.6+0x2724a", "[kernel]+0x…" or "[unknown]": without control characters, and with ':' for
 * each ';', which folded lines are made of. Returns name. */
const char *calls_name(const struct call *call, char *name, size_t size);

/* Who an entry is about, by its keys: "comm", "comm-PID/TID" or what of these there is; "all" if there is
 * nothing of it. */
const char *calls_owner(const json_t *entry, char *name, size_t size);

#define CALLS_NAME_MAX 1100

/* Whether a record, or a part of one, has entries with stacks. */
bool calls_lead_to(const json_t *record);

/* How often an entry, or a rest, came: its samples, or its branches. */
json_int_t calls_count(const json_t *entry);

/* What the calls led to where that is more than a place: a branch, as "main -> work". Returns name; NULL if
 * there is nothing. */
const char *calls_end(const json_t *entry, char *name, size_t size);

#endif
