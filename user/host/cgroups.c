// SPDX-License-Identifier: GPL-2.0-only
#include "host/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"

/* Least and greatest number of cgroups that are kept before those that no longer exist are searched for. */
#define KNOWN_LEAST 256
#define KNOWN_MOST  65536

/* The least time between two searches of the whole hierarchy. */
#define SEARCH_NS 1000000000ULL

#define HIERARCHY_ROOT 1 /* inode number of the root of all cgroups: kernfs_create_root() */

#define FILEID_KERNFS 0xfe /* include/linux/exportfs.h */

struct known_cgroup {
	__u64 id;
	__u64 used_ns; /* when it was learnt or asked for last, CLOCK_MONOTONIC */
	char *path;    /* NULL: the search did not find it */
};

struct cgroups {
	const char *mount;
	int folder;	   /* file descriptor of the mount, for handles; -1: not open */
	bool refused;	   /* open_by_handle_at(2) is not permitted */
	bool whole;	   /* the mount shows the whole hierarchy, so the kernel's paths can be used */
	struct map known;  /* struct known_cgroup by id */
	size_t most;	   /* how many may be known before some are forgotten */
	__u64 keep_ns;	   /* see cgroups_keep() */
	__u64 searched_ns; /* when the hierarchy was searched last; 0: never */
};

static void forget_cgroup(struct known_cgroup *known)
{
	free(known->path);
	free(known);
}

static void forget_all(struct cgroups *cgroups)
{
	size_t at = 0;
	struct known_cgroup *known;

	while ((known = map_next(&cgroups->known, &at)))
		forget_cgroup(known);
	map_release(&cgroups->known);
}

bool cgroups_is_whole(const char *mount)
{
	struct stat root;

	return !stat(mount, &root) && root.st_ino == HIERARCHY_ROOT;
}

void cgroups_see_mount(struct cgroups *cgroups)
{
	cgroups->whole = *cgroups->mount && cgroups_is_whole(cgroups->mount);
	cgroups->searched_ns = 0;
	forget_all(cgroups);
}

struct cgroups *cgroups_new(const char *mount)
{
	struct cgroups *cgroups = xcalloc(1, sizeof(*cgroups));

	*cgroups = (struct cgroups){.mount = mount, .folder = -1, .most = KNOWN_LEAST};
	cgroups_see_mount(cgroups);
	return cgroups;
}

void cgroups_release(struct cgroups *cgroups)
{
	if (!cgroups)
		return;
	forget_all(cgroups);
	if (cgroups->folder >= 0)
		close(cgroups->folder);
	free(cgroups);
}

void cgroups_keep(struct cgroups *cgroups, __u64 ns)
{
	cgroups->keep_ns = ns > cgroups->keep_ns ? ns : cgroups->keep_ns;
}

static bool is_there(const struct cgroups *cgroups, const struct known_cgroup *known)
{
	char path[PATH_MAX];
	struct stat stat_of;

	if (!known->path)
		return false;
	snprintf(path, sizeof(path), "%s%s", cgroups->mount, known->path);
	return !stat(path, &stat_of) && stat_of.st_ino == known->id;
}

/* Forgets cgroups that have gone and that no open interval can refer to. */
static void forget_gone(struct cgroups *cgroups)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), since = now > cgroups->keep_ns ? now - cgroups->keep_ns : 0;
	struct map *all = &cgroups->known;
	struct known_cgroup *known;
	size_t at = 0;

	if (all->nr >= KNOWN_MOST)
		since = now;
	while ((known = map_next(all, &at)))
		if (known->used_ns < since && !is_there(cgroups, known)) {
			map_remove(all, known->id, known);
			forget_cgroup(known);
			at--;
		}
	cgroups->most = 2 * all->nr > KNOWN_LEAST ? 2 * all->nr : KNOWN_LEAST;
	if (cgroups->most > KNOWN_MOST && all->nr < KNOWN_MOST)
		cgroups->most = KNOWN_MOST;
}

static struct known_cgroup *find_known(struct cgroups *cgroups, __u64 id)
{
	struct known_cgroup *known = map_find(&cgroups->known, id);

	if (known)
		known->used_ns = clock_ns(CLOCK_MONOTONIC);
	return known;
}

/* Adds a cgroup. `path` may be NULL: it was not found. */
static struct known_cgroup *remember_cgroup(struct cgroups *cgroups, __u64 id, const char *path)
{
	struct known_cgroup *known;

	if (cgroups->known.nr >= cgroups->most)
		forget_gone(cgroups);
	known = xcalloc(1, sizeof(*known));
	*known = (struct known_cgroup){
		.id = id, .used_ns = clock_ns(CLOCK_MONOTONIC), .path = path ? xstrdup(path) : NULL};
	map_put(&cgroups->known, id, known);
	return known;
}

/* The part of a path below the mount. */
static const char *below(const struct cgroups *cgroups, const char *path)
{
	size_t length = strlen(cgroups->mount);

	if (strncmp(path, cgroups->mount, length))
		return NULL;
	return path[length] ? path + length : "/";
}

/* Asks the kernel for a path. Returns whether it has answered; `path` is "" if there is no such cgroup. */
static bool ask_kernel(struct cgroups *cgroups, __u64 id, char *path, size_t size)
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
	/* EPERM: CAP_DAC_READ_SEARCH is missing; other errors: the kernel, or a filter, lacks the system
	 * call. */
	cgroups->refused = fd < 0 && errno != ESTALE && errno != ENOENT;
	if (fd < 0)
		return !cgroups->refused;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, size - 1);
	path[length > 0 ? length : 0] = '\0';
	close(fd);
	return true;
}

static bool take_in(void *cgroups, const char *path, __u64 id)
{
	cgroups_note(cgroups, id, path);
	return true;
}

/* Walks the whole hierarchy, at most once in SEARCH_NS, and keeps all cgroups. */
static void search_hierarchy(struct cgroups *cgroups)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	if (!*cgroups->mount || (cgroups->searched_ns && now - cgroups->searched_ns < SEARCH_NS))
		return;
	cgroups->searched_ns = now;
	cgroups_walk(cgroups->mount, "", 0, take_in, cgroups);
}

void cgroups_note(struct cgroups *cgroups, __u64 id, const char *path)
{
	struct known_cgroup *known = find_known(cgroups, id);

	if (!known)
		remember_cgroup(cgroups, id, path);
	else if (!known->path && path)
		known->path = xstrdup(path);
}

bool cgroups_are_all_seen(const struct cgroups *cgroups)
{
	return cgroups->whole;
}

void cgroups_made(struct cgroups *cgroups, __u64 id, const char *path)
{
	if (cgroups->whole)
		cgroups_note(cgroups, id, path);
	else
		cgroups_path(cgroups, id);
}

const char *cgroups_path(struct cgroups *cgroups, __u64 id)
{
	struct known_cgroup *known = find_known(cgroups, id);
	char path[PATH_MAX];

	if (known)
		return known->path;
	if (ask_kernel(cgroups, id, path, sizeof(path)))
		return remember_cgroup(cgroups, id, *path ? below(cgroups, path) : NULL)->path;
	search_hierarchy(cgroups);
	known = find_known(cgroups, id);
	return known ? known->path : NULL;
}

/* --- the hierarchy ---------------------------------------------------------------------------- */

static bool is_link_of_folder(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* `path` is the folder's, of `length` bytes; visit() gets it without the first `mount` bytes. */
static void walk_below(int parent, const char *name, char *path, size_t length, size_t mount, cgroup_fn visit,
		       void *context)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	struct stat there;

	if (!folder) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(folder))) {
		size_t used = strlen(entry->d_name);

		if (entry->d_type != DT_DIR || is_link_of_folder(entry->d_name) ||
		    length + 1 + used >= PATH_MAX || fstatat(fd, entry->d_name, &there, AT_SYMLINK_NOFOLLOW))
			continue;
		path[length] = '/';
		memcpy(path + length + 1, entry->d_name, used + 1);
		/* A folder has two links, and one more for each child: with two it has no children. */
		if (visit(context, path + mount, there.st_ino) && there.st_nlink > 2)
			walk_below(fd, entry->d_name, path, length + 1 + used, mount, visit, context);
	}
	path[length] = '\0';
	closedir(folder);
}

void cgroups_walk(const char *mount, const char *below, size_t length, cgroup_fn visit, void *context)
{
	char path[PATH_MAX];
	int used = snprintf(path, sizeof(path), "%s%.*s", mount, (int)length, below);

	struct stat root;

	if (*mount && !length && !stat(mount, &root))
		visit(context, "/", root.st_ino);
	if (*mount && used < PATH_MAX)
		walk_below(AT_FDCWD, path, path, used, strlen(mount), visit, context);
}
