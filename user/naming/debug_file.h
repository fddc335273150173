/* SPDX-License-Identifier: GPL-2.0-only */
/* Opens files by a path as a process or another system sees it, which may be below another root, and finds
 * their debug files. */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "base/guarded.h"
#include "naming/image.h"

/* A file, by its path in its own system. */
struct file_place {
	char root[64 + PATH_MAX]; /* "": this process's root */
	char path[PATH_MAX];	  /* below the root */
	char direct[PATH_MAX];	  /* path to open it by, instead of root and path; "" if not used */
};

/* Opens a debug file by its path in the file's own system, or in nhmtap's if `ours`. Returns the descriptor,
 * or -1. */
typedef int (*open_debug_fn)(bool ours, const char *path);

/* Splits a path. "/proc/12/root/bin/x", "/proc/12/map_files/…" and "/proc/12/exe" belong to the root
 * /proc/12/root; other paths are below `root` (NULL: this process's root). */
void place_of_path(struct file_place *place, const char *path, const char *root);

/* Opens the file for reading. Links are followed within the root. Waits for a limited time: see
 * naming/foreign.h. Sets what stat(2) tells of the file, unless `stat` is NULL: the descriptor may be that of
 * a copy. Returns the descriptor, or -1 with errno: see foreign_ask(). */
int place_open(const struct file_place *place, struct stat *stat);

/* The same for the perf-PID.map of a process of this user, of at most `most` bytes. No links are followed. */
int place_open_map(const struct file_place *place, uid_t owner, __u64 most, struct stat *stat);

/*
 * Opens a debug file for the file at the place. It must be readable by all, or, if it is beside the file or
 * in debug_dir, may also belong to `owner`. The path comes from a file that may be hostile, so it could name
 * any file.
 */
int place_open_debug(const struct file_place *place, bool ours, const char *path, uid_t owner,
		     const char *debug_dir);

/* The folders that debug files are looked for in. */
struct debug_dirs {
	const char *debug;
	const char *fetched; /* the cache of debuginfod's client; "": none */
};

/* Where debug files are searched: see debug_file_open(). */
struct debug_folders {
	const struct file_place *place;
	struct debug_dirs dirs;
	open_debug_fn open;
};

/* Stores the cache of debuginfod's client, which need not exist; "" if there can be none. */
void debug_dirs_fetched(char *dir, size_t size);

/* Opens the debug file of an image. It is searched by build-id in the folder of debug files, below the file's
 * root and below ours, and in the cache; then by the image's .gnu_debuglink, whose checksum must match.
 * Returns whether it was found. */
bool debug_file_open(struct image *debug, const struct image *of, const struct file_place *place,
		     const struct debug_dirs *dirs, open_debug_fn open);

/* Opens the alternate debug file (.gnu_debugaltlink) of an image with DWARF, by its name and build-id (hex).
 * Returns whether it was found. */
bool alternate_open(struct image *alternate, const char *name, const char *build_id,
		    const struct file_place *place, const struct debug_dirs *dirs, open_debug_fn open);
