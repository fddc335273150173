/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks as the formats write them: the frames of records, by name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "output/text.h"

/* Commands whose records have stacks: see struct format. */
#define COMMANDS_OF_STACKS "profile,mem,branch"

/* The frames that the stacks of the following records refer to. Starts as {0}. */
struct calls {
	json_t *defined; /* the last record of type frames, with its parts joined */
};

/* Takes in a record of type frames. It replaces the one before, or is appended if it is a further part of the
 * same record. The record is not kept. */
void calls_define(struct calls *calls, const json_t *frames);
void calls_release(struct calls *calls);

/* A frame by its id, NULL if it was not defined. */
const json_t *calls_frame(const struct calls *calls, json_int_t id);

/* One of the functions that a frame stands for. Inlined functions come before those they are inlined in. */
struct call {
	const json_t *frame;
	const char *symbol;  /* NULL if not known */
	const char *linkage; /* its mangled name; NULL if it has none, or no output wants them */
	const char *file;    /* source file; NULL if not known */
	json_int_t line;     /* 0 if not known */
	bool inlined;	     /* inlined in the next function */
};

/* How many functions a frame stands for: at least one. */
size_t calls_in(const json_t *frame);
struct call calls_at(const json_t *frame, size_t i);

bool calls_of_kernel(const json_t *frame);

/* Whether the function has no name but a place in its file, as it has until the file's names are read. Where
 * its bounds are known, the file has no name for it, now or later; what is in brackets, as [anon], is no
 * file. */
bool calls_is_place(const struct call *call);

/* Writes "main", "[libc.so.6+0x27200]" (a function without a name, by its beginning), "libc.so.6+0x2724a",
 * "[kernel]+0x…" or "[unknown]", without control characters. Returns name. */
const char *calls_name(const struct call *call, char *name, size_t size);

/* The symbol, or of a function without a name what calls_name() writes; NULL: it is no known function. */
const char *calls_function(const struct call *call, char *name, size_t size);

/* Appends a name and its mark ("_[k]"; "": none) to a folded line, behind the ';' that separates it from the
 * one before: with ':' in place of ';', which names like Rust's [u8; 4] have. */
void calls_fold(struct text *line, const char *name, const char *mark);

/* The owner of an entry, from its keys: "comm", "comm-PID/TID" or as much of this as there is; "all" if the
 * entry has none of these keys. Returns name. */
const char *calls_owner(const json_t *entry, char *name, size_t size);

#define CALLS_NAME_MAX 1100

/* Whether the record, or a part of it, has entries with stacks. */
bool calls_lead_to(const json_t *record);

/* What an entry or `rest` weighs: the periods of its samples, that is, what they stand for. In records that
 * do not have them: its number of branches or samples. */
json_int_t calls_weight(const json_t *entry);

/* What a record's entries are: "edge", "function", …; "range" if there is nothing but ranges. "": they are
 * samples, or there are none. */
const char *calls_kind(const json_t *record);

/* A record's branches, or its ranges, as a record of their own: what ranges weigh is no part of what branches
 * add up to. The account of samples is in the first of them that there is. A new reference to this record if
 * it has no ranges; NULL if it has none of what is asked for. */
json_t *calls_part(const json_t *record, bool ranges);

/* Gives a record's branches, and then its ranges, to take(): each part that there is, for the time of the
 * call. */
void calls_each_part(const json_t *record, void (*take)(void *context, const json_t *part), void *context);

/* The code that an entry's samples are of: where a branch leaves, or else where the stack ends, or the
 * entry's own. NULL if the entry has none of these. */
const json_t *calls_own_code(const struct calls *calls, const json_t *entry);

/* Lists the functions that an entry's stack leads through, the outermost first. A branch's own function is
 * the last: the stack is of the interrupt, which may have come elsewhere. It is not listed twice where the
 * stack ends in it. The list grows, with its room, and is the caller's. Returns how many there are: 0 if the
 * entry has no stack. */
size_t calls_path(const struct calls *calls, const json_t *entry, struct call **list, size_t *room);

/* The branch that the stack led to, as "main -> work". Returns name, or NULL if the entry is no branch. */
const char *calls_end(const json_t *entry, char *name, size_t size);

/* What stands for the part of the stack that is missing, "[stack lost: ...]". Returns name, or NULL if none
 * is. */
const char *calls_lost(const json_t *entry, char *name, size_t size);

/* One of the texts that a stack is written as. */
struct step {
	const char *name; /* of a function as calls_name() writes it, of the owner, or words in brackets */
	const struct call *call; /* NULL: it is no function */
};

/* The file of the step's source, or else of its code; "" if neither is known. */
const char *step_file(const struct step *step);

/* Calls `visit` for the owner of an entry, "[stack lost: ...]" if a part is missing, the functions from the
 * outermost to the innermost, and the branch that the stack led to. */
void calls_walk(const struct calls *calls, const json_t *entry,
		void (*visit)(void *of, const struct step *step), void *of);
