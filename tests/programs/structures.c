// SPDX-License-Identifier: GPL-2.0-only
/*
 * structures N: walks a list, an array, a hash table and a tree of N items each ROUNDS times, and loads known
 * fields. Each part is a function of its own:
 *
 *   walk_list    N loads of struct node's value, and N of next
 *   sum_array    N of struct item's weight, and N of count
 *   find_all     N of struct table's slots; N of struct entry's key, and N of value
 *   sum_tree     N each of struct tree's left, right and number
 *   sum_globals  N of the global `bounds.upper`, and N of `bounds.lower`
 *
 * Items are allocated, and so far apart that no two share a cache line.
 */
#include <stdlib.h>

#define APART 64

struct node {
	struct node *next;
	long value;
	char pad[APART];
};

struct item {
	char pad[APART];
	long weight;
	int count;
};

struct entry {
	char pad[APART];
	long key;
	long value;
};

struct table {
	long size;
	struct entry **slots;
};

struct tree {
	char pad[APART];
	struct tree *left, *right;
	long number;
};

typedef struct {
	long lower, upper;
} limits;

volatile limits bounds = {1, 2};

volatile long result;

__attribute__((noinline, noclone)) long walk_list(const struct node *node)
{
	long sum = 0;

	for (; node; node = node->next)
		sum += node->value;
	return sum;
}

__attribute__((noinline, noclone)) long sum_array(const struct item *items, long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += items[i].weight * items[i].count;
	return sum;
}

static inline long find(const struct table *table, long key)
{
	const struct entry *entry = table->slots[key];

	return entry->key == key ? entry->value : 0;
}

__attribute__((noinline, noclone)) long find_all(const struct table *table, long n)
{
	long sum = 0;

	for (long key = 0; key < n; key++)
		sum += find(table, key);
	return sum;
}

__attribute__((noinline, noclone, optimize("no-optimize-sibling-calls"))) long
sum_tree(const struct tree *tree)
{
	if (!tree)
		return 0;
	return sum_tree(tree->left) + sum_tree(tree->right) + tree->number;
}

__attribute__((noinline, noclone)) long sum_globals(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += bounds.upper - bounds.lower;
	return sum;
}

static struct tree *make_tree(long low, long high)
{
	struct tree *tree;

	if (low >= high)
		return NULL;
	tree = calloc(1, sizeof(*tree));
	tree->number = low + (high - low) / 2;
	tree->left = make_tree(low, tree->number);
	tree->right = make_tree(tree->number + 1, high);
	return tree;
}

#define ROUNDS 4

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;
	struct node *list = NULL;
	struct item *items = calloc(n, sizeof(*items));
	struct table table = {n, calloc(n, sizeof(*table.slots))};
	struct tree *tree = make_tree(0, n);

	for (long i = 0; i < n; i++) {
		struct node *node = calloc(1, sizeof(*node));

		node->next = list;
		node->value = i;
		list = node;
		table.slots[i] = calloc(1, sizeof(struct entry));
		table.slots[i]->key = i;
	}
	for (int i = 0; i < ROUNDS; i++)
		result += walk_list(list) + sum_array(items, n) + find_all(&table, n) + sum_tree(tree) +
			  sum_globals(n);
	return 0;
}
