/* SPDX-License-Identifier: GPL-2.0-only */
/* Paths of cgroups by the id that BPF programs see. */
#ifndef NHMTAP_CGROUPS_H
#define NHMTAP_CGROUPS_H

#include <linux/types.h>

struct cgroups;

/* mount: where cgroup2 is mounted, "" if nowhere; borrowed. */
struct cgroups *cgroups_new(const char *mount);
void cgroups_release(struct cgroups *cgroups);

/*
 * The path below the mount ("/system.slice/ssh.service", "/" for the root), or NULL if no cgroup has
 * this id now. An id is the inode number of the cgroup's folder (kernfs_id(), 64-bit hosts), and names
 * it for open_by_handle_at(2); where that is refused, the hierarchy is searched. Paths are remembered,
 * also those of cgroups that have gone; the string is valid up to the next call.
 */
const char *cgroups_path(struct cgroups *cgroups, __u64 id);

#endif
