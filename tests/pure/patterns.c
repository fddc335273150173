/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads lines "PATTERN PATH". Prints whether the path matches, whether a path below it may match,
 * and the root of the pattern. */
#include <stdio.h>

#include "host/cgroup_pattern.h"

int main(void)
{
	char pattern[1024], path[1024];

	while (scanf("%1023s %1023s", pattern, path) == 2)
		printf("%d %d /%.*s\n", cgroup_fits(pattern, path), cgroup_may_fit_below(pattern, path),
		       (int)cgroup_pattern_root(pattern + 1), pattern + 1);
	return 0;
}
