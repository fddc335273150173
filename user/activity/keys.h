/* SPDX-License-Identifier: GPL-2.0-only */
/* Supports keys of --by that are names of code. The kernel aggregates by address, and entries with the same
 * name are summed up when records are written. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "aggregation/aggregation.h"
#include "base/refusal.h"
#include "naming/codes.h"

/* A key that is a name of code or of data. A table of them ends with a NULL name. */
struct code_key {
	const char *name;    /* "symbol" */
	const char *needs;   /* the kernel's keys that it is made from: "ip,pid,comm" */
	unsigned int detail; /* of enum code_detail */
};

/* For BPF programs that have the key `ip`. */
extern const struct code_key ip_code_keys[];
/* For those that have the address of data as well. */
extern const struct code_key data_code_keys[];
/* For stacks: the detail by which frames are distinguished. */
extern const struct code_key stack_code_keys[];

struct chosen_keys {
	const char *option;	      /* that gave them; NULL: "--by" */
	const char *by;		      /* as given by the user */
	const struct code_key *table; /* NULL: there are none */
	unsigned int detail;	      /* of all keys that were asked for; 0: no names */
	char kernel[256];	      /* the keys for the kernel */
};

void keys_choose(struct chosen_keys *chosen, const char *by, const struct code_key *table);

/* Adds a key for the kernel that the user need not have asked for. */
void keys_need(struct chosen_keys *chosen, const char *name);

/* Whether the user asked for this key. */
bool keys_asked(const struct chosen_keys *chosen, const char *name);

/* Opens an aggregation with the keys; its tables take `most` bytes if they can: see aggregation_open(). Keys
 * that are only needed for names are not shown. Returns 0, or -1 with the refusal. */
int keys_open(struct aggregation **aggregation, const char *name, const struct chosen_keys *chosen,
	      const struct host *host, size_t most, struct refusal *refusal);

/* The start record's list of keys; a new reference. */
json_t *keys_value(const struct chosen_keys *chosen, const struct layout *layout);
