// SPDX-License-Identifier: GPL-2.0-only
#include "host/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

/* Paths that are remembered; beyond, the older half is forgotten. */
#define KNOWN_MOST 4096

#define FILEID_KERNFS 0xfe /* include/linux/exportfs.h */

struct known_path {
	__u64 id;
	char *path; /* NULL: looked for in vain */
};

struct cgroups {
	const char *mount;
	int folder;		  /* the mount's, for handles; -1: not open */
	bool refused;		  /* open_by_handle_at(2) was */
	struct known_path *known; /* in the order in which they were found */
	size_t nr;
};

struct cgroups *cgroups_new(const char *mount)
{
	struct cgroups *cgroups = xcalloc(1, sizeof(*cgroups));

	*cgroups = (struct cgroups){.mount = mount, .folder = -1};
	return cgroups;
}

void cgroups_release(struct cgroups *cgroups)
{
	if (!cgroups)
		return;
	for (size_t i = 0; i < cgroups->nr; i++)
		free(cgroups->known[i].path);
	free(cgroups->known);
	if (cgroups->folder >= 0)
		close(cgroups->folder);
	free(cgroups);
}

static void forget_half(struct cgroups *cgroups)
{
	size_t half = cgroups->nr / 2;

	for (size_t i = 0; i < half; i++)
		free(cgroups->known[i].path);
	cgroups->nr -= half;
	memmove(cgroups->known, cgroups->known + half, cgroups->nr * sizeof(*cgroups->known));
}

static const char *remember(struct cgroups *cgroups, __u64 id, const char *path)
{
	if (!cgroups->known)
		cgroups->known = xcalloc(KNOWN_MOST, sizeof(*cgroups->known));
	if (cgroups->nr == KNOWN_MOST)
		forget_half(cgroups);
	cgroups->known[cgroups->nr] = (struct known_path){id, path ? xstrdup(path) : NULL};
	return cgroups->known[cgroups->nr++].path;
}

/* A path's part below the mount. */
static const char *below(const struct cgroups *cgroups, const char *path)
{
	size_t length = strlen(cgroups->mount);

	if (strncmp(path, cgroups->mount, length))
		return NULL;
	return path[length] ? path + length : "/";
}

/* Returns whether the kernel has answered; `path` is "" if there is no such cgroup. */
static bool ask(struct cgroups *cgroups, __u64 id, char *path, size_t size)
{
	char link[64], handle_bytes[sizeof(struct file_handle) + sizeof(id)];
	struct file_handle *handle = (struct file_handle *)handle_bytes;
	ssize_t length;
	int fd;

	if (cgroups->folder < 0)
		cgroups->folder = open(cgroups->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroups->folder < 0 || cgroups->refused)
		return false;
	handle->handle_bytes = sizeof(id);
	handle->handle_type = FILEID_KERNFS;
	memcpy(handle->f_handle, &id, sizeof(id));
	*path = '\0';
	fd = open_by_handle_at(cgroups->folder, handle, O_PATH | O_CLOEXEC);
	/* EPERM: no CAP_DAC_READ_SEARCH; others: a kernel or a filter that has no such call. */
	cgroups->refused = fd < 0 && errno != ESTALE && errno != ENOENT;
	if (fd < 0)
		return !cgroups->refused;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, size - 1);
	path[length > 0 ? length : 0] = '\0';
	close(fd);
	return true;
}

static void search(const struct cgroups *cgroups, __u64 id, char *path, size_t size)
{
	char *roots[] = {(char *)cgroups->mount, NULL};
	FTS *walk = *cgroups->mount ? fts_open(roots, FTS_PHYSICAL | FTS_XDEV, NULL) : NULL;
	FTSENT *at;

	*path = '\0';
	while (walk && !*path && (at = fts_read(walk)))
		if (at->fts_info == FTS_D && at->fts_statp->st_ino == id)
			snprintf(path, size, "%s", at->fts_path);
	if (walk)
		fts_close(walk);
}

const char *cgroups_path(struct cgroups *cgroups, __u64 id)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < cgroups->nr; i++)
		if (cgroups->known[i].id == id)
			return cgroups->known[i].path;
	if (!ask(cgroups, id, path, sizeof(path)))
		search(cgroups, id, path, sizeof(path));
	return remember(cgroups, id, *path ? below(cgroups, path) : NULL);
}
