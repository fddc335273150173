/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads files and folders that may be on a file system that does not answer: a process apart copies what they
 * hold. All functions have the calling thread's rights. They fail with ETIMEDOUT if there is no answer for
 * `wait_ns`; soon after such a failure they hardly wait. */
#pragma once

#include <sys/stat.h>
#include <linux/types.h>

/* How long to wait before anything is measured. */
#define COPIED_WAIT_NS 2000000000ULL

/* As guarded_open_path(). A file that may have to be waited for is copied to memory, and the descriptor is
 * that of the copy. */
int copied_open(const char *path, __u64 most, __u64 wait_ns);

/* As stat(2). */
int copied_stat(const char *path, struct stat *stat, __u64 wait_ns);

/* Lists a folder in the order of names, without . and .. , as texts that follow each other. The last one is
 * empty. The caller frees it. Returns NULL with errno. */
char *copied_list(const char *path, __u64 wait_ns);
