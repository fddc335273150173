/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds names of code: for a place in a file from its ELF symbols and DWARF, for a kernel address from
 * kallsyms, for code compiled at run time from a perf-PID.map. Symbols are read when they are first needed
 * and then kept, in limited memory. Whatever a file contains, the worst answer is "unknown".
 *
 * These functions open and read files, so they must not be called while samples are being read. Only one
 * thread may call them at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

#include "naming/map_writer.h"

/* A function that contains the address. */
struct frame {
	const char *symbol;  /* demangled, at most NAMING_SYMBOL_MAX bytes; NULL: not known */
	const char *linkage; /* the same as the linker knows it (mangled); NULL: it is not mangled */
	__u64 offset;	  /* of the address in the symbol; 0 if the function is inlined in the next frame's */
	const char *file; /* source file, NULL: not known */
	unsigned int line; /* from 1; 0: not known */
};

struct name {
	const char *build_id;	    /* lower-case hex, NULL: the file has none, or there is no file */
	const char *module;	    /* of the kernel: "[kernel]", "[ext4]", "[bpf]"; NULL for other code */
	const struct frame *frames; /* innermost inlined one first; the last is the function itself */
	size_t nr;		    /* 0: unknown */
	const char *why; /* why it is unknown: a constant sentence without a full stop; NULL if nr > 0 */
	bool nameless;	 /* of code: it is in a function, but a stripped file has no name for it */
	__u64 function_offset; /* then: how far after its beginning the address is */
	const char *lines_why; /* what its file's lines lack and why, though it has DWARF; NULL: nothing is
				  known */
	bool refused;	       /* reason: the file was found but not opened; see base/guarded.h */
	bool failed;  /* reason: the worker died or hung on the file, or there is none; see worker.h */
	bool no_room; /* reason: the memory has no room for the file's symbols */
	bool later;   /* reason: the map has changed, but is not read again yet */
	/* Of data, if the settings ask for types: its type, and the field in it (NULL: none), or why there is
	 * no type: a word of TYPE_… of naming/untyped.h. */
	const char *type, *field, *untyped;
	bool indexed; /* of what code accesses: the offset in the variable is not known */
	bool outside; /* reason, of data: it is not in what is loaded of the file */
};

#define NAMING_SYMBOL_MAX 2048		/* longer ones are cut, and end with "…" */
#define NAMING_MEMORY	  (256UL << 20) /* the default limit */
#define WORKER_BYTES	  (3UL << 20)	/* memory of the worker before it has read anything */

struct naming_settings {
	const char *root;	   /* folder that plain paths are below; NULL: paths are used as they are */
	const char *debug_dir;	   /* NULL: /usr/lib/debug */
	const char *kallsyms;	   /* path of a copy of it; NULL: /proc/kallsyms */
	const char *modules;	   /* path of a copy of it; NULL: /proc/modules */
	const char *module_folder; /* with a folder for each module; NULL: /sys/module */
	bool lines;	/* also find source files, lines and inlined functions, if there is DWARF */
	bool data;	/* also find symbols of data: see naming_datum() */
	bool types;	/* also find types of data; needs `data` and `lines` */
	size_t memory;	/* limit in bytes; the least recently used is dropped. Of each file, a symbol table
			   larger than a quarter of it stays there, and an index of this size is kept; DWARF
			   larger than three quarters of what the symbols leave is not read; 0: NAMING_MEMORY
			 */
	bool sparing;	/* a source that had no room is not read again for a while */
	bool few_lines; /* lines of sources that had no room are not read again for a while; symbols are */
};

struct naming;

/* Starts the worker: see worker.h. Strings of the settings must live as long as the naming. */
struct naming *naming_open(const struct naming_settings *settings);
void naming_close(struct naming *naming);

/* Waits until the worker has started, so that the first request for a name need not wait for it. */
void naming_wait(struct naming *naming);

/*
 * Returned names are never NULL unless noted. They are valid until the next call with the same naming, so the
 * caller must copy what it keeps.
 *
 * Names the place at `offset` in a file. `path` is how this process can open the file:
 * /proc/PID/root/usr/bin/x and /proc/PID/map_files/… are files of a process (debug files are then also
 * searched in the process's root), "[vdso]" is this machine's vdso, anything else is a path below the
 * settings' root. `build_id` (hex, any case; NULL: not known) avoids opening a file that is already known; if
 * the file has another build-id, it was replaced and is refused. Without a build-id, each call checks the
 * file by stat(2), and reads it again if it has changed.
 */
const struct name *naming_file(struct naming *naming, const char *path, const char *build_id, __u64 offset);

/*
 * Names the data at `distance` bytes (modulo 2^64) from where the code at `offset` is in memory, if that is
 * in what is loaded of the same file: its initialized and uninitialized variables and constants. The frame's
 * symbol and offset are the variable's. Needs `data` of the settings.
 */
const struct name *naming_datum(struct naming *naming, const char *path, const char *build_id, __u64 offset,
				__u64 distance);

/* Tells the type of what the code at an offset of a file loads or stores: type, field and untyped of the
 * name. Needs `types` of the settings. */
const struct name *naming_access(struct naming *naming, const char *path, const char *build_id, __u64 offset);

/* Names a kernel address. */
const struct name *naming_kernel(struct naming *naming, __u64 address);

/* The same as these four, but return NULL if the file, or kallsyms, would have to be read first. */
const struct name *naming_known_datum(struct naming *naming, const char *path, const char *build_id,
				      __u64 offset, __u64 distance);
const struct name *naming_known_access(struct naming *naming, const char *path, const char *build_id,
				       __u64 offset);
const struct name *naming_known_file(struct naming *naming, const char *path, const char *build_id,
				     __u64 offset);
const struct name *naming_known_kernel(struct naming *naming, __u64 address);

/* Names a place in a file that was read before and has this build-id; otherwise returns NULL. Touches no
 * file. */
const struct name *naming_known_build_id(struct naming *naming, const char *build_id, __u64 offset);

/*
 * Names an address of a process by its perf-PID.map `map`, which must be of this writer. If the map has
 * changed, it is read again if it lacks the address, or at most once a second otherwise, and in at most one
 * part in 20 of the time.
 */
const struct name *naming_jit(struct naming *naming, const char *map, const struct map_writer *writer,
			      __u64 address);

/* Forgets files that were not used since `since` (CLOCK_MONOTONIC, ns, in whole seconds), and names of other
 * files that were made before. They are read again when needed. The kernel's symbols stay. */
void naming_forget(struct naming *naming, __u64 since);

/* Bytes in use, as counted against the limit. */
size_t naming_memory(const struct naming *naming);
