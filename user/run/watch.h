/* SPDX-License-Identifier: GPL-2.0-only */
/* Notices that CONFIG has changed: a process of its own looks once a second, since the file system may not
 * answer. inotify(7) would have to know each symbolic link on the way (a ConfigMap of Kubernetes has two),
 * and tells nothing of what other machines change in a file system of a network. */
#pragma once

#include "base/apart.h"

/* Watches the file at `path` from now on: what is at the path, not an inode. The path must outlive the call
 * only. Returns whether there is a process; apart_leave() ends it. */
bool watch_begin(struct apart *watcher, const char *path);

/* To be called when the process's socket can be read. Returns 1 if the file has changed since the last call
 * and was then the same for a second, 0 if not, -1 if the process has ended. */
int watch_take(const struct apart *watcher);
