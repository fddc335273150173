/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looks up names with a deadline. A file that must be read first is read in a separate thread. If this takes
 * longer than the caller can wait, the thread continues, and the name is known at a later call. Only one
 * thread may call these functions, and nothing else may use the naming meanwhile.
 */
#pragma once

#include "naming/naming.h"

struct background;

/* The thread is started only when there is a file to read. The caller owns the naming, which must outlive the
 * background. */
struct background *background_open(struct naming *naming);

/* Waits until the current lookup is done, and frees everything. NULL is allowed. */
void background_close(struct background *background);

enum background_kind { NAME_OF_FILE, NAME_OF_DATUM, NAME_OF_ACCESS, NAME_OF_JIT, NAME_OF_KERNEL };

/* What is to be named. Members that the function of its kind does not take are ignored. */
struct background_request {
	enum background_kind kind;
	const char *path;
	const char *build_id;
	struct map_writer writer;
	__u64 address;	/* or the offset in the file */
	__u64 distance; /* NAME_OF_DATUM */
};

/*
 * The same as naming_file(), naming_datum(), naming_access(), naming_jit() and naming_kernel(). Returns NULL
 * if there is no result by `deadline` (CLOCK_MONOTONIC, ns; 0: waits as long as it takes).
 */
const struct name *background_name(struct background *background, const struct background_request *wanted,
				   __u64 deadline);

/* As naming_known_build_id(). Returns NULL also if a file is being read at the moment. */
const struct name *background_known(struct background *background, const char *build_id, __u64 offset);

/* Calls naming_forget(), but only if no file is being read at the moment. */
void background_forget(struct background *background, __u64 since);
