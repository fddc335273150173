/* SPDX-License-Identifier: GPL-2.0-only */
/* File systems of this machine's kernel alone, whose files can be used without waiting for anyone. Behind
 * others is a server, of FUSE or in the network, which may not answer. Unknown ones count among these. */
#ifndef NHMTAP_LOCAL_H
#define NHMTAP_LOCAL_H

#include <stdbool.h>

/* Whether an open file is on a local file system. Asks the file system, so it may wait. */
bool local_is(int fd);

/* The same by what the kernel knows without asking it. */
bool local_is_known(int fd);

/* Whether a file at this path can be opened or created without waiting for a server. Looks only at what is in
 * the kernel's cache, and says no if the path is not. */
bool local_place(const char *path);

#endif
