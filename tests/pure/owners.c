/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads paths of cgroups, one per line, and prints their owners: "ID RUNTIME POD UNIT", '-' for
 * none. */
#include <stdio.h>
#include <string.h>

#include "host/cgroup_owner.h"

static const char *or_none(const char *text)
{
	return text && *text ? text : "-";
}

int main(void)
{
	char path[8192];

	while (fgets(path, sizeof(path), stdin)) {
		struct cgroup_owner owner;

		path[strcspn(path, "\n")] = '\0';
		owner = cgroup_owner(path);
		printf("%s %s %s %s\n", or_none(owner.container_id), or_none(owner.runtime),
		       or_none(owner.pod_uid), or_none(owner.unit));
	}
	return 0;
}
