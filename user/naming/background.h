/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names with a deadline: a file that has to be read first is read in a thread of its own. What takes longer
 * than the caller can wait goes on there, and is known the next time. Only one thread may call, and it must
 * not use the naming otherwise meanwhile.
 */
#ifndef NHMTAP_BACKGROUND_H
#define NHMTAP_BACKGROUND_H

#include "naming/naming.h"

struct background;

/* Starts no thread before there is a file to read. The naming stays the caller's, and must live longer. */
struct background *background_open(struct naming *naming);

/* Waits for what is being read. */
void background_close(struct background *background);

enum background_kind { NAME_OF_FILE, NAME_OF_JIT, NAME_OF_KERNEL };

/*
 * As naming_file(), naming_jit() and naming_kernel(), which take as many of the arguments; NULL if that
 * has not come to an end at `deadline` (CLOCK_MONOTONIC, ns; 0: as long as it takes).
 */
const struct name *background_name(struct background *background, enum background_kind kind, const char *path,
				   const char *build_id, uid_t owner, __u64 address, __u64 deadline);

/* As naming_forget(), if nothing is being read just now. */
void background_forget(struct background *background, __u64 since);

#endif
