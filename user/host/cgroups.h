/* SPDX-License-Identifier: GPL-2.0-only */
/* Paths of cgroups by the id that BPF programs see. */
#ifndef NHMTAP_CGROUPS_H
#define NHMTAP_CGROUPS_H

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

/* mount: where cgroup2 is mounted, "" if nowhere; borrowed. */
struct cgroups *cgroups_new(const char *mount);
void cgroups_release(struct cgroups *cgroups);

/*
 * The path below the mount ("/system.slice/ssh.service", "/" for the root), or NULL if it is not known. An
 * id is the inode number of the cgroup's folder (kernfs_id(), 64-bit hosts), and names it for
 * open_by_handle_at(2); where that is refused, the whole hierarchy is taken in, at most once a second. A path
 * stays known after its cgroup has gone, as long as cgroups_keep() says. Valid up to the next call.
 */
const char *cgroups_path(struct cgroups *cgroups, __u64 id);

/* Adds a path below the mount that is known otherwise for the cgroup of this id. */
void cgroups_note(struct cgroups *cgroups, __u64 id, const char *path);

/* Notes a cgroup that was created, as PERF_RECORD_CGROUP says. The path is from the root of the whole
 * hierarchy. */
void cgroups_made(struct cgroups *cgroups, __u64 id, const char *path);

/* Paths of cgroups that no longer exist are kept for `ns`, so that they are known until the interval ends. If
 * called several times, the longest time counts. Without a call, they are dropped once there are many. */
void cgroups_keep(struct cgroups *cgroups, __u64 ns);

#endif
