/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What bpf/branch.bpf.c has found, as members of a record: addresses become places in files, and places
 * that are the same in several processes become one.
 */
#ifndef NHMTAP_BRANCHES_H
#define NHMTAP_BRANCHES_H

#include <jansson.h>

#include "collection/aggregation.h"
#include "host/host.h"
#include "record/module.h"

struct branches;

/* Takes in a reading; the caller owns the result up to branches_release(). Processes that are there are
 * looked at: see record/module.h. */
struct branches *branches_of(const struct host *host, const struct layout *layout,
			     const struct reading *reading);
void branches_release(struct branches *branches);

/* How many edges and ranges there are. */
size_t branches_count(const struct branches *branches);

/* Puts stacks, branches, entries (those with the highest counts first, not more than `top`) and, for
 * what is beyond, rest into a record. */
void branches_put(const struct branches *branches, json_t *record, size_t top);

/* The place of a process's, or the kernel's, address; a new reference. */
json_t *branches_place(pid_t pid, __u64 address);

/* A program and where its code is; a new reference. */
json_t *program_value(const struct program *program);

#endif
