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

/* Opens a debug file by its path in the file's own system, or in ours. Returns the descriptor, or -1. */
typedef int (*open_debug_fn)(bool ours, const char *path);

/* "/proc/12/root/bin/x", "/proc/12/map_files/…", "/proc/12/exe" lie below /proc/12/root, others below
 * the root that is given (NULL: ours). */
void place_of(struct place *place, const char *path, const char *root);

/* Opens for reading; links are followed within the root. Never waits. Returns the descriptor, or -1 with
 * errno: see guarded_open(). */
int place_open(const struct place *place);

/* Opens the perf-PID.map of a process of this user, likewise; no links are followed. */
int place_open_map(const struct place *place, uid_t owner, __u64 most);

/* Opens a debug file for the file at the place: one that all may read, or, beside the file or in debug_dir,
 * one of this owner's. Whoever asks for it may be after any other. */
int place_open_debug(const struct place *place, bool ours, const char *path, uid_t owner,
		     const char *debug_dir);

/*
 * Opens the debug file of an image: by its build-id, in debug_dir below the file's root and below ours,
 * else as its .gnu_debuglink says, with the right checksum. Returns whether there is one.
 */
bool debug_file_open(struct image *debug, const struct image *of, const struct place *place,
		     const char *debug_dir, open_debug_fn open);

/* The image that an image with DWARF shares parts with, by its name or its build-id (hex). */
bool alternate_open(struct image *alternate, const char *name, const char *build_id,
		    const struct place *place, const char *debug_dir, open_debug_fn open);

#endif
