/* SPDX-License-Identifier: GPL-2.0-only */
/* Tells when cgroups are made in folders of a cgroup file system, by inotify(7). */
#pragma once

struct cgroup_notices;

/* Returns NULL if the kernel refuses; then cgroups are only found by searches. The caller calls
 * cgroup_notices_close(). */
struct cgroup_notices *cgroup_notices_open(void);
void cgroup_notices_close(struct cgroup_notices *notices);

/* The descriptor that is readable when there are notices. */
int cgroup_notices_fd(const struct cgroup_notices *notices);

/* Watches a folder, if it is not watched already. */
void cgroup_notices_watch(struct cgroup_notices *notices, const char *folder);

/* Ends the watches of folders that cgroup_notices_watch() was not called for since the last call. Of a
 * removed cgroup the kernel sends no IN_IGNORED: its inode stays as long as the watch (fs/kernfs/dir.c). */
void cgroup_notices_keep(struct cgroup_notices *notices);

/* Calls `made` for each cgroup that was made in a watched folder since the last call. */
void cgroup_notices_take(struct cgroup_notices *notices, void (*made)(void *context, const char *folder),
			 void *context);
