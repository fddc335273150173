/* SPDX-License-Identifier: GPL-2.0-only */
/* Paths of cgroups by the id that BPF programs see. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct cgroups;

/* Called with a cgroup's path below the mount, which is valid only during the call, and its id. Returns
 * whether its children are to be visited too. */
typedef bool (*cgroup_fn)(void *context, const char *path, __u64 id);

/* Visits the cgroups below the one whose path is the first `length` bytes of `below`. Parents come before
 * their children. Folders that can't be read are skipped. */
void cgroups_walk(const char *mount, const char *below, size_t length, cgroup_fn visit, void *context);

/* Whether a folder, where cgroup2 is mounted, is the root of the whole hierarchy. */
bool cgroups_is_whole(const char *mount);

/* `mount` is where cgroup2 is mounted, "" if nowhere. It is borrowed. */
struct cgroups *cgroups_new(const char *mount);

/* Looks at the mount again: it may have come. What was not found without it is forgotten. */
void cgroups_see_mount(struct cgroups *cgroups);
void cgroups_release(struct cgroups *cgroups);

/*
 * The path below the mount ("/system.slice/ssh.service", "/" for the root), or NULL if it is not known. The
 * id is the inode number of the cgroup's folder (kernfs_id(), 64-bit hosts), by which open_by_handle_at(2)
 * can open it. If that is not permitted, the whole hierarchy is read, at most once a second. After a cgroup
 * is removed, its path remains known for the time set by cgroups_keep(). The result is valid until the next
 * call.
 */
const char *cgroups_path(struct cgroups *cgroups, __u64 id);

/* Adds the path below the mount of the cgroup with this id, if it is known from elsewhere. */
void cgroups_note(struct cgroups *cgroups, __u64 id, const char *path);

/* Whether the mount shows the whole hierarchy. Otherwise, cgroups outside of it have no path. */
bool cgroups_are_all_seen(const struct cgroups *cgroups);

/* Notes a cgroup that was created, as PERF_RECORD_CGROUP says. The path is from the root of the whole
 * hierarchy. */
void cgroups_made(struct cgroups *cgroups, __u64 id, const char *path);

/* Paths of cgroups that no longer exist are kept for `ns`, so that they are known until the interval ends. If
 * called several times, the longest time counts. Without a call, they are dropped once there are many. */
void cgroups_keep(struct cgroups *cgroups, __u64 ns);
