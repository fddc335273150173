/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files that processes have mapped. They are distinguished by path, build-id and root. They are kept open as
 * long as a process has them mapped, so that a file can still be read after it was deleted or replaced, or
 * after its container has gone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

/* All files and roots. Each is reference-counted, and released with its last reference. */
struct mapped_files;

struct mapped_files *mapped_files_new(void);
/* The same for what is only to be told by name: no file is opened, and memory without a file keeps its name
 * ("[heap]"). */
struct mapped_files *mapped_files_by_name(void);
void mapped_files_release(struct mapped_files *files);

/* What a process sees as "/". Reference-counted: each root that is returned must be given to root_put(). */
struct root;

/* The root of a process; NULL if it has ended or belongs to another user. */
struct root *root_of(struct mapped_files *files, pid_t pid);
struct root *root_get(struct root *root); /* NULL stays NULL */
void root_put(struct root *root);

#define BUILD_ID_TEXT 41 /* bytes of the longest build-id in hex, with its final zero */

enum file_kind {
	FILE_REGULAR,	/* or a copy of the vdso of another kind of process: "[vdso32]", "[vdsox32]" */
	FILE_VDSO,	/* "[vdso]": code that the kernel maps into each process of this one's kind */
	FILE_ANONYMOUS, /* no file: code that was made at run time */
};

struct mapped_file {
	const char *path;	      /* as the process sees it; "[vdso]", "[vdso32]", "[anon]" */
	char build_id[BUILD_ID_TEXT]; /* lower-case hex; "" if it has none or it is not known */
	enum file_kind kind;
	/* The rest is private to mapped_file.c. */
	struct mapped_files *files;
	size_t users;
	struct root *root;
	int fd;		     /* kept open; -1: not open */
	bool readable;	     /* by read(2); otherwise it was opened with O_PATH: see naming/foreign.h */
	__u64 filesystem;    /* device of it, for foreign_is_stuck(); 0: not known */
	__u64 device, inode; /* as the kernel numbers them in /proc/PID/maps; 0: not known */
	__u64 unwound; /* for unwind/unwinding.c: when its table was last asked for, CLOCK_MONOTONIC, ns */
};

/* Where a file was seen. */
struct sighting {
	pid_t pid;
	struct root *root; /* may be NULL; owned by the caller */
	const char *path;
	__u64 begin, end;     /* its addresses in the process */
	const char *build_id; /* hex; "" if not known */
	__u64 device, inode;  /* 0: not known */
};

/* Memory of all files. */
size_t mapped_files_bytes(const struct mapped_files *files);

/* Writes a build-id as hex, cut to BUILD_ID_TEXT. */
void build_id_text(char text[BUILD_ID_TEXT], const __u8 *build_id, size_t size);

/*
 * Returns the file of this path, build-id and root if it is already known. NULL if it is not known or must be
 * looked at first. Files with the same build-id have the same code, so the root need not be up to date. The
 * caller gets a reference, to be released by mapped_file_put().
 */
struct mapped_file *mapped_file_known(struct mapped_files *files, const struct sighting *sighting);

/* Returns the file of this sighting. A new file is opened if it still exists, and its build-id is read. The
 * caller gets a reference, to be released by mapped_file_put(). */
struct mapped_file *mapped_file_get(struct mapped_files *files, const struct sighting *sighting);
struct mapped_file *mapped_file_again(struct mapped_file *file); /* takes another reference */
void mapped_file_put(struct mapped_file *file);

/*
 * Writes to `text` a path by which this process can open the file: its own path if that still leads to this
 * file, a path below /proc if it belongs to another root, or the descriptor that is kept open. Returns the
 * path, or NULL if the file is gone, or if it is not a file.
 */
const char *mapped_file_path(const struct mapped_file *file, char *text, size_t size);

/* The same for a path within a root ("/tmp/perf-7.map"), which need not exist. NULL if the root
 * is unknown. */
const char *root_path(const struct root *root, const char *path, char *text, size_t size);
