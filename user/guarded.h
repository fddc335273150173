/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opens files whose path or content another user may control. Opening a device or a FIFO can have effects,
 * so a file is looked up first (O_PATH), then checked, and only then opened, as the same file.
 */
#ifndef NHMTAP_GUARDED_H
#define NHMTAP_GUARDED_H

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

/* Whose files are read. */
enum guard_owner {
	GUARD_ANYBODY,	      /* the kernel, or the user, says that it is this file */
	GUARD_OWN_OR_PUBLIC,  /* the owner's, and what all may read */
	GUARD_OWN_OR_SYSTEMS, /* the owner's, and root's that all may read: not what a third user put there */
};

struct guard {
	enum guard_owner whose;
	uid_t owner;
	__u64 most; /* bytes; larger files are refused */
};

#define GUARD_IMAGE_MOST (16ULL << 30)

/*
 * Finds the file, `resolve` as openat2(2) has it, 0: openat(2)'s way, and opens it for reading. Returns the
 * descriptor, or -1 with errno: EMEDIUMTYPE: no regular file; EFBIG: larger than `most`; EKEYREJECTED: not a
 * file of the owner that is asked for; else openat2(2)'s.
 */
int guarded_open(int folder, const char *path, __u64 resolve, const struct guard *guard);

/* The same of a path that the kernel, or the user, names: of any owner. */
int guarded_open_path(const char *path, __u64 most);

/* What an errno of open(2) or of these functions means, as the end of a sentence: "it is no regular file". */
const char *guarded_why(int error);

/* Whether an errno of guarded_open() is a refusal; otherwise there is no such file, or it may not be read. */
bool guarded_refused(int error);

#endif
