/* SPDX-License-Identifier: GPL-2.0-only */
/* File systems of this machine's kernel alone, whose files can be used without waiting for anyone. Behind
 * others is a server, of FUSE or in the network, which may not answer. Unknown ones count among these. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether an open file is on a local file system. Asks the file system, so it may wait. Those below an
 * overlay are looked for in the mounts of this process, or else of another one that uses the file (0: none).
 */
bool local_is(int fd, pid_t pid);

/* The same by what the kernel knows without asking it. */
bool local_is_known(int fd);

/* Whether a file at this path can be opened or created without waiting for a server. Looks only at what is in
 * the kernel's cache, and says no if the path is not. */
bool local_place(const char *path);
