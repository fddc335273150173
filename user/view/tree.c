// SPDX-License-Identifier: GPL-2.0-only
#include "view/tree.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "output/rows.h"

struct way_key {
	__u32 parent, name;
};
#define NO_WAY (~0U)

void way_tree_init(struct way_tree *tree)
{
	*tree = (struct way_tree){0};
	interned_init(&tree->keys, sizeof(struct way_key));
}

void way_tree_release(struct way_tree *tree)
{
	interned_release(&tree->keys);
	free(tree->nodes);
}

static __u32 node_of(struct way_tree *tree, __u32 parent, __u32 name)
{
	struct way_key key = {parent, name};
	size_t seen = tree->keys.nr;
	__u32 number = interned_number(&tree->keys, &key);

	if (number != seen)
		return number;
	tree->nodes = xroom(tree->nodes, seen, &tree->room, sizeof(*tree->nodes));
	tree->nodes[number] = (struct stood_for){0};
	return number;
}

void way_tree_add(struct way_tree *tree, const __u32 *names, size_t nr, const struct stood_for *weight)
{
	__u32 parent = NO_WAY;

	for (size_t i = 0; i < nr; i++) {
		parent = node_of(tree, parent, names[i]);
		stood_for_add(&tree->nodes[parent], weight);
	}
}

/* --- rows ------------------------------------------------------------------------------------- */

/* The nodes in the order in which they are shown: those of a parent together, the largest first. */
struct shown_tree {
	const struct way_tree *tree;
	const struct numbered_texts *texts;
	const struct stood_for *whole;
	double least;
	struct sheet *sheet;
	__u32 *order;
};

static const struct way_key *key_at(const struct way_tree *tree, __u32 number)
{
	return interned_at(&tree->keys, number);
}

static int by_parent_and_weight(const void *a, const void *b, void *of)
{
	const struct way_tree *tree = of;
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;
	__u32 above = key_at(tree, x)->parent, other = key_at(tree, y)->parent;

	if (above != other)
		return above < other ? -1 : 1;
	if (tree->nodes[x].sum != tree->nodes[y].sum)
		return tree->nodes[x].sum > tree->nodes[y].sum ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The place in the order where the children of a node begin. */
static size_t first_child(const struct shown_tree *shown, __u32 parent)
{
	return FIRST_NOT(shown->tree->keys.nr, i, key_at(shown->tree, shown->order[i])->parent < parent);
}

static void way_row(const struct shown_tree *shown, const struct stood_for *weight, const char *name,
		    int depth)
{
	char number[40];

	sheet_add(shown->sheet, "%s", row_grouped(weight->samples, number, sizeof(number)));
	sheet_add(shown->sheet, "%.1f%%", weight_share(weight, shown->whole));
	sheet_add(shown->sheet, "%.1f", weight_share_error(weight, shown->whole));
	sheet_add(shown->sheet, "%*s%s", 2 * depth, "", name);
}

#define DEPTH_MOST 200 /* of nested rows: more than stacks have frames, but for inlined functions */

static void rows_below(const struct shown_tree *shown, __u32 parent, int depth)
{
	struct stood_for others = {0};
	const struct way_tree *tree = shown->tree;
	size_t left_out = 0;
	char words[40];

	for (size_t i = first_child(shown, parent); i < tree->keys.nr; i++) {
		__u32 number = shown->order[i];

		if (key_at(tree, number)->parent != parent)
			break;
		if (depth &&
		    (weight_share(&tree->nodes[number], shown->whole) < shown->least || depth > DEPTH_MOST)) {
			stood_for_add(&others, &tree->nodes[number]);
			left_out++;
			continue;
		}
		way_row(shown, &tree->nodes[number], text_of_number(shown->texts, key_at(tree, number)->name),
			depth);
		rows_below(shown, number, depth + 1);
	}
	snprintf(words, sizeof(words), "(in %zu more)", left_out);
	if (left_out)
		way_row(shown, &others, words, depth);
}

void way_tree_rows(const struct way_tree *tree, const struct numbered_texts *texts,
		   const struct stood_for *whole, double least, struct sheet *sheet)
{
	struct shown_tree shown = {tree, texts, whole, least, sheet, NULL};

	shown.order = xmalloc((tree->keys.nr + 1) * sizeof(*shown.order));
	for (size_t i = 0; i < tree->keys.nr; i++)
		shown.order[i] = i;
	qsort_r(shown.order, tree->keys.nr, sizeof(*shown.order), by_parent_and_weight, (void *)tree);
	rows_below(&shown, NO_WAY, 0);
	free(shown.order);
}
