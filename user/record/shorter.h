/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stddef.h>
#include <jansson.h>

#include "record/fields.h"

/* Returns a copy of a value whose longest texts are cut, and then end with "…", until it has at most `most`
 * bytes as compact JSON. Numbers and the members of objects stay. */
json_t *value_shorter(const json_t *value, size_t most);

/*
 * Returns a copy of the members of a record whose longest lists end earlier, by `excess` bytes of compact
 * JSON at least where lists are that long, and which says so by "truncated". Lists begin with what matters
 * most: a stack with its innermost frame, branches with the newest. The caller clears it by fields_clear();
 * texts are those of `fields`.
 */
struct fields fields_shorter(const struct fields *fields, size_t excess);
