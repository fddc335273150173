/* SPDX-License-Identifier: GPL-2.0-only */
/* Paths of cgroups by the id that BPF programs see. */
#ifndef NHMTAP_CGROUP_H
#define NHMTAP_CGROUP_H

#include <linux/types.h>

/*
 * The path below the cgroup2 mount ("/system.slice/ssh.service", "/" for the root), or NULL if no
 * cgroup has this id now. An id is the inode number of the cgroup's folder (kernfs_id(), 64-bit
 * hosts). Paths are remembered; the string lives as long as the program.
 */
const char *cgroup_path(__u64 id);

#endif
