/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the cycles of a stored run went: by its analysis records, or by the counts of events that the tree of
 * its CPU has. */
#pragma once

#include <jansson.h>

#include "base/refusal.h"
#include "option/options.h"

struct stored_counts;

/* The options say which further tables of CPUs there are. They are borrowed. */
struct stored_counts *stored_counts_new(const struct options *options);
void stored_counts_release(struct stored_counts *stored);

/* Takes in a record of any type, in the order of the stream. It is not kept. */
void stored_counts_take(struct stored_counts *stored, const json_t *record);

/*
 * Makes an analysis record for each activity and row (cgroup, CPU, ...) that has one in the stream, or whose
 * counts make one. Returns a list, a new reference: of objects {of, activity, record, start}, of which `of`
 * tells them apart, and `start` may be missing; NULL with the refusal if there is none.
 */
json_t *stored_counts_analyses(struct stored_counts *stored, struct refusal *refusal);
