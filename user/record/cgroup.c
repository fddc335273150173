// SPDX-License-Identifier: GPL-2.0-only
#include "record/cgroup.h"

#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ftw.h>
#include <sys/stat.h>

static struct known_path {
	__u64 id;
	char *path; /* NULL: looked for in vain */
} *known;
static size_t nr_known;

/* For the walk, which takes no argument of its own. */
static const char *walk_root;

static void remember(__u64 id, const char *path)
{
	for (size_t i = 0; i < nr_known; i++)
		if (known[i].id == id)
			return;
	known = realloc(known, (nr_known + 1) * sizeof(*known));
	known[nr_known++] = (struct known_path){id, path ? strdup(path) : NULL};
}

static int visit(const char *path, const struct stat *stat, int type, struct FTW *at)
{
	const char *below = path + strlen(walk_root);

	if (type == FTW_D)
		remember(stat->st_ino, *below ? below : "/");
	return 0;
}

static void walk(void)
{
	static char root[PATH_MAX];
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;

	while (mounts && (mount = getmntent(mounts)))
		if (!strcmp(mount->mnt_type, "cgroup2")) {
			snprintf(root, sizeof(root), "%s", mount->mnt_dir);
			walk_root = root;
			nftw(root, visit, 16, FTW_PHYS | FTW_MOUNT);
			break;
		}
	if (mounts)
		endmntent(mounts);
}

static const struct known_path *find(__u64 id)
{
	for (size_t i = 0; i < nr_known; i++)
		if (known[i].id == id)
			return &known[i];
	return NULL;
}

const char *cgroup_path(__u64 id)
{
	const struct known_path *found = find(id);

	if (!found) {
		walk();
		remember(id, NULL);
		found = find(id);
	}
	return found->path;
}
