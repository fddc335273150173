/* SPDX-License-Identifier: GPL-2.0-only */
/* The tree of the shares in records of type analysis, which may be in several parts. */
#pragma once

#include <jansson.h>

/* What each share is a part of: {name: name of its parent, "" for none}. Starts as an empty object. Takes in
 * a record's shares, behind those of its earlier parts. */
void share_tree_take(json_t *parents, const json_t *record);

/* How deep a share is in the tree. */
int share_tree_depth(const json_t *parents, const char *name);
