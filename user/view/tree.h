/* SPDX-License-Identifier: GPL-2.0-only */
/* A function and the ways that lead to it, or from it: what samples stand for, along their stacks. */
#pragma once

#include "base/interned.h"
#include "output/texts.h"
#include "view/sheet.h"
#include "view/weights.h"

struct way_tree {
	struct interned keys; /* a node's parent, and the number of its name; the first is the function */
	struct stood_for *nodes;
	size_t room;
};

void way_tree_init(struct way_tree *tree);
void way_tree_release(struct way_tree *tree);

/* Adds to the function, names[0], and to each of the names that follow it. */
void way_tree_add(struct way_tree *tree, const __u32 *names, size_t nr, const struct stood_for *weight);

/* Adds a row for each node, those of a node below it and indented; nodes below `least` percent of the whole
 * are summed up. */
void way_tree_rows(const struct way_tree *tree, const struct numbered_texts *texts,
		   const struct stood_for *whole, double least, struct sheet *sheet);
