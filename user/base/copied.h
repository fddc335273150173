/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads files that may be on a file system that does not answer: a process apart copies them. */
#ifndef NHMTAP_COPIED_H
#define NHMTAP_COPIED_H

#include <linux/types.h>

/* As guarded_open_path(), with the calling thread's rights. A file that may have to be waited for is copied
 * to memory, and the descriptor is that of the copy. Returns -1 with ETIMEDOUT if that takes longer than
 * `wait_ns`. */
int copied_open(const char *path, __u64 most, __u64 wait_ns);

#endif
