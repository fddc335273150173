/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opens files whose path or content another user may control. Opening a device or a FIFO can have effects,
 * so a file is looked up first (O_PATH), then checked, and only then opened, as the same file.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

/* Which owners of a file are accepted. */
enum guard_owner {
	GUARD_ANYBODY,	      /* any: the kernel, or the user, has named this file */
	GUARD_OWN_OR_PUBLIC,  /* the owner's files, and files that all may read */
	GUARD_OWN_OR_SYSTEMS, /* the owner's files, and root's that all may read: none of a third user */
};

struct guard {
	enum guard_owner whose;
	uid_t owner;
	__u64 most; /* bytes; larger files are refused */
};

#define GUARD_IMAGE_MOST (16ULL << 30)

/*
 * Finds the file and opens it for reading. `resolve`: see openat2(2); 0: as openat(2) does. Returns the
 * descriptor, or -1 with errno. EMEDIUMTYPE: not a regular file; EFBIG: larger than `most`; EKEYREJECTED: the
 * file's owner is not accepted; otherwise an error of openat2(2).
 */
int guarded_open(int folder, const char *path, __u64 resolve, const struct guard *guard);

/* The two steps of it: finds the file, and opens what was found. The first returns a descriptor that was
 * opened with O_PATH. */
int guarded_find(int folder, const char *path, __u64 resolve, const struct guard *guard);
int guarded_open_found(int found);

/* The same as guarded_open() for a path that the kernel or the user has named: any owner is accepted. */
int guarded_open_path(const char *path, __u64 most);

/* Describes an errno of open(2) or of these functions, as the end of a sentence: "it is no regular file". */
const char *guarded_why(int error);

/* Whether an errno of guarded_open() means that the file was refused; otherwise it does not exist, or may not
 * be read. */
bool guarded_refused(int error);
