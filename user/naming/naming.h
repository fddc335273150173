/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names for code: of a place in a file from its ELF symbols and DWARF, of a kernel address from kallsyms, of
 * compiled-at-run-time code from a perf-PID.map. Everything is looked up when it is first asked for and kept,
 * in bounded memory. Whatever a file holds, the worst answer is "unknown".
 *
 * Calls open and read files, so none may be made while samples are being read. One thread at a time.
 */
#ifndef NHMTAP_NAMING_H
#define NHMTAP_NAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

/* A function that the address is in. */
struct frame {
	const char *symbol; /* demangled, at most NAMING_SYMBOL_MAX bytes; NULL: not known */
	__u64 offset;	    /* of the address in the symbol; 0 in a frame that is inlined in the next one */
	const char *file;   /* source file, NULL: not known */
	unsigned int line;  /* in it, from 1; 0: not known */
};

struct name {
	const char *build_id;	    /* lower-case hex, NULL: the file has none, or there is no file */
	const char *module;	    /* of the kernel: "[kernel]", "[ext4]", "[bpf]"; NULL for other code */
	const struct frame *frames; /* what is inlined innermost first; the last is the function itself */
	size_t nr;		    /* 0: unknown */
	const char *why;	    /* it is unknown: a constant sentence without an end; NULL where nr > 0 */
	bool refused;		    /* why: the file was found and not opened; see guarded.h */
	bool failed;		    /* why: reading the file ended or held up who reads files; see worker.h */
};

#define NAMING_SYMBOL_MAX 2048		/* longer ones are cut, and end with "…" */
#define NAMING_MEMORY	  (256UL << 20) /* the default limit */
#define WORKER_BYTES	  (3UL << 20)	/* of a process that reads files, before it has read anything */

struct naming_settings {
	const char *root;      /* plain paths are looked for below this folder; NULL: as they are */
	const char *debug_dir; /* NULL: /usr/lib/debug */
	const char *kallsyms;  /* a copy of it; NULL: /proc/kallsyms */
	const char *modules;   /* a copy of /proc/modules, likewise */
	bool lines;	       /* also source files, lines, and inlined frames, where there is DWARF */
	size_t memory;	       /* bytes; what was used longest ago goes first. Of a file, symbol tables
				* larger than a quarter of it are not read, nor is DWARF that is larger
				* than three quarters of what the symbols leave; 0: NAMING_MEMORY */
	bool sparing;	       /* a source that found no room is not read again for a while */
};

struct naming;

/* Starts the process that reads files: see worker.h. Strings of the settings must live as long. */
struct naming *naming_open(const struct naming_settings *settings);
void naming_close(struct naming *naming);

/* Waits until the process that reads files has started, so that nobody has to who asks for a name. */
void naming_wait(struct naming *naming);

/*
 * A name that is returned is never NULL, and valid up to the next call with the same naming: copy what
 * is to be kept.
 *
 * The place at `offset` in a file. `path` is how the file can be opened from here:
 * /proc/PID/root/usr/bin/x and /proc/PID/map_files/… name files of a process (its debug files are then
 * also looked for in the process's root), "[vdso]" is this machine's, anything else is a path below the
 * settings' root. `build_id` (hex, any case; NULL: not known) saves opening a file that is known
 * already, and refuses one that has another: it was replaced. Without one, a file is looked at (stat) each
 * time, and read again when it is another one.
 */
const struct name *naming_file(struct naming *naming, const char *path, const char *build_id, __u64 offset);

/* A kernel address. */
const struct name *naming_kernel(struct naming *naming, __u64 address);

/* The same as these two; NULL where the file, or the kernel's list, would have to be read first. */
const struct name *naming_known_file(struct naming *naming, const char *path, const char *build_id,
				     __u64 offset);
const struct name *naming_known_kernel(struct naming *naming, __u64 address);

/* An address of a process of the user `owner` that writes a perf-PID.map, which has to belong to the owner or
 * root. A map that has changed is read again if it lacks the address, or after a second. */
const struct name *naming_jit(struct naming *naming, const char *map, uid_t owner, __u64 address);

/* Forgets the files that were not asked for since then (CLOCK_MONOTONIC, ns), and names of the others that
 * were made before; whole seconds count. What is asked for again is read again. The kernel's list stays. */
void naming_forget(struct naming *naming, __u64 since);

/* Bytes that are kept now, as they are counted against the limit. */
size_t naming_memory(const struct naming *naming);

#endif
