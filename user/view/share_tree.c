// SPDX-License-Identifier: GPL-2.0-only
#include "view/share_tree.h"

#include "output/member.h"

#define DEPTH_MOST 8 /* records of others may have a share that is a part of itself */

void share_tree_take(json_t *parents, const json_t *record)
{
	json_t *share;
	size_t i;

	if (integer(record, "part") <= 1)
		json_object_clear(parents);
	json_array_foreach(json_object_get(record, "shares"), i, share)
		json_object_set_new_nocheck(parents, string(share, "name"),
					    json_string_nocheck(string(share, "parent")));
}

int share_tree_depth(const json_t *parents, const char *name)
{
	int depth = 0;

	while (depth < DEPTH_MOST && *(name = string(parents, name)))
		depth++;
	return depth;
}
