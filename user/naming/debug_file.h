/* SPDX-License-Identifier: GPL-2.0-only */
/* Files by the paths of a process or a system that may lie below another root, and their debug files. */
#ifndef NHMTAP_DEBUG_FILE_H
#define NHMTAP_DEBUG_FILE_H

#include <limits.h>

#include "guarded.h"
#include "naming/image.h"

/* A file as its own system sees it. */
struct place {
	char root[64 + PATH_MAX]; /* "" : ours */
	char path[PATH_MAX];	  /* below the root */
	char direct[PATH_MAX];	  /* how it is opened, where that is not by root and path; or "" */
};

/* "/proc/12/root/bin/x", "/proc/12/map_files/…", "/proc/12/exe" lie below /proc/12/root, others below
 * the root that is given (NULL: ours). */
void place_of(struct place *place, const char *path, const char *root);

/* Opens for reading; links are followed within the root. Never waits. Returns the descriptor, or -1 with
 * errno: see guarded_open(). */
int place_open(const struct place *place);

/* Opens the perf-PID.map of a process of this user, likewise; no links are followed. */
int place_open_map(const struct place *place, uid_t owner, __u64 most);

/*
 * Opens the debug file of an image: by its build-id, in debug_dir below the file's root and below ours,
 * else as its .gnu_debuglink says, with the right checksum. Returns whether there is one.
 */
bool debug_file_open(struct image *debug, const struct image *of, const struct place *place,
		     const char *debug_dir);

/* The image that an image with DWARF (`of`) shares parts with, by its name or its build-id (hex). */
bool alternate_open(struct image *alternate, const struct image *of, const char *name, const char *build_id,
		    const struct place *place, const char *debug_dir);

#endif
