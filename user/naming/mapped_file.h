/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files as processes have mapped them. They are told apart by path, build-id and root, and held open as long
 * as a process has them, so that a file that was deleted or replaced, or whose container has gone, can still
 * be read.
 */
#ifndef NHMTAP_MAPPED_FILE_H
#define NHMTAP_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

/* All files and roots, reference-counted; each is released with its last reference. */
struct mapped_files;

struct mapped_files *mapped_files_new(void);
void mapped_files_release(struct mapped_files *files);

/* What a process sees as "/". Counted: root_put() for each that was given. */
struct root;

/* The root of a process; NULL if it has ended or belongs to another user. */
struct root *root_of(struct mapped_files *files, pid_t pid);
struct root *root_get(struct root *root); /* NULL stays NULL */
void root_put(struct root *root);

#define BUILD_ID_TEXT 41 /* bytes of the longest, in hex, and its end */

enum file_kind {
	FILE_REGULAR,
	FILE_VDSO,	/* the kernel's gift: "[vdso]" */
	FILE_ANONYMOUS, /* no file: code that was made at run time */
};

struct mapped_file {
	const char *path;	      /* as the process sees it; "[vdso]", "[anon]" */
	char build_id[BUILD_ID_TEXT]; /* lower-case hex; "" if it has none or it is not known */
	enum file_kind kind;
	/* The rest is mapped_file.c's. */
	struct mapped_files *files;
	size_t users;
	struct root *root;
	int fd;		     /* -1: not held */
	__u64 device, inode; /* as the kernel numbers them in /proc/PID/maps; 0: not known */
	struct mapped_file *next;
	__u64 unwound; /* unwind/unwinding.c's: when its table was asked for last, CLOCK_MONOTONIC, ns */
};

/* Where a file was seen. */
struct sighting {
	pid_t pid;
	struct root *root; /* may be NULL; stays the caller's */
	const char *path;
	__u64 begin, end;     /* where the process has it */
	const char *build_id; /* hex; "" if not known */
	__u64 device, inode;  /* 0: not known */
};

/* Hex of a build-id, cut to what there is room for. */
void build_id_text(char text[BUILD_ID_TEXT], const __u8 *build_id, size_t size);

/* A file of this path, build-id and root that is there already; NULL: none is known, or it has to be looked
 * at. What has the same build-id has the same code, so it need not be known whether the root is right. The
 * caller has a count of it up to mapped_file_put(). */
struct mapped_file *mapped_file_known(struct mapped_files *files, const struct sighting *sighting);

/* The one file of these properties; it is opened if it is new and there yet, and its build-id read. The
 * caller has a count of it up to mapped_file_put(). */
struct mapped_file *mapped_file_get(struct mapped_files *files, const struct sighting *sighting);
struct mapped_file *mapped_file_again(struct mapped_file *file); /* one count more */
void mapped_file_put(struct mapped_file *file);

/*
 * How it can be opened from here, written to `text`: its own path where that still is this file, a path
 * below /proc where it is somebody else's path, or the descriptor that is held. Returns text, or NULL if
 * nothing of it is left, or it is no file.
 */
const char *mapped_file_path(const struct mapped_file *file, char *text, size_t size);

/* A path of this root ("/tmp/perf-7.map"), likewise; it need not exist. NULL if the root is not known. */
const char *root_path(const struct root *root, const char *path, char *text, size_t size);

#endif
