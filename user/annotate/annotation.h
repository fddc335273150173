/* SPDX-License-Identifier: GPL-2.0-only */
/* The code of a function with its samples: instructions, source lines, and what was sampled at each. */
#pragma once

#include <jansson.h>

#include "output/text.h"

/* The keys that the samples are to be aggregated by: of any event, and of loads. */
#define ANNOTATED_KEYS	       "place"
#define ANNOTATED_KEYS_OF_DATA "place,source"

struct annotator;

/* Starts no process yet. */
struct annotator *annotator_new(void);
void annotator_release(struct annotator *annotator);

/*
 * Makes the annotation records of the functions of this name (as shown, or mangled) in which entries of the
 * record were sampled, whose code is known by its place: module, build-id and offset. Reads the programs and
 * their sources, by the paths that the entries have. Returns a list, a new reference; it has at least one
 * record, which says why if there is no code.
 */
json_t *annotate(struct annotator *annotator, const char *function, const json_t *record);

/* Appends an annotation record as people read it. With a member `branches` its samples are branches. */
void annotation_print(struct text *text, const json_t *record);
