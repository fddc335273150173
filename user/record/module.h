/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which file an address of a process belongs to, from /proc/PID/maps. A process that was not looked at
 * while it was there is not known.
 */
#ifndef NHMTAP_MODULE_H
#define NHMTAP_MODULE_H

#include <stddef.h>
#include <linux/types.h>
#include <sys/types.h>

/* Reads which executable code the process has mapped now, beside what it had before. Quietly does
 * nothing where there is no such process any more, or it is another user's. */
void module_look(pid_t pid);

/*
 * The path of the file that the address of a process comes from, as the process sees it ("[vdso]" for
 * the kernel's gift), and the offset in that file; NULL if it is not known. What was mapped last
 * counts. Paths are kept; equal ones are the same string, which lives as long as the program.
 */
const char *module_of(pid_t pid, __u64 address, __u64 *offset);

/* A part of a program's file with code in it. */
struct code_segment {
	__u64 offset, size; /* in the file */
	__u64 address;      /* of its beginning, as objdump shows it */
};

#define CODE_SEGMENTS 4 /* a linker makes one; a file with more is cut */

/* The program that a process has executed. */
struct program {
	const char *path; /* kept, as above */
	struct code_segment segments[CODE_SEGMENTS];
	size_t nr;
};

/* NULL if not known; valid up to the next module_look(). */
const struct program *module_program(pid_t pid);

#endif
