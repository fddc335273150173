/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a record says of code: each address of a process becomes as much of module, function, source line as
 * was asked for, or else the place from which that can still be found later. Addresses with equal results
 * become one code, with a number.
 */
#ifndef NHMTAP_CODES_H
#define NHMTAP_CODES_H

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

#include "naming/background.h"
#include "naming/mappings.h"

/* What is asked for, any of: */
enum code_detail {
	CODE_MODULE = 1 << 0,
	CODE_PLACE = 1 << 1,  /* module, and where in it; nothing is looked up in a file for it */
	CODE_SYMBOL = 1 << 2, /* module and function; its place where it has no name */
	CODE_LINE = 1 << 3,   /* the same, the source line, and what is inlined there */
	CODE_RETURN = 1 << 4, /* besides: the address is where a call returns to, and the call is meant */
};

/* Texts are one of each, so that pointers can be compared; NULL: not known, or not asked for. */
struct code {
	const char *module;   /* "/usr/bin/true", "[vdso]", "[anon]", "[kernel]", "[ext4]" */
	const char *build_id; /* where `offset` says something of a file */
	const char *symbol;   /* the function */
	const char *file;     /* of the instruction, with `line`: it may be inlined from elsewhere */
	const char *inlined;  /* the functions that are inlined there, as a JSON list, innermost first */
	__u64 offset;	      /* in the file; where there is no symbol, or CODE_PLACE */
	__u64 address;	      /* where there is neither: the kernel's, a JIT's, or of no known module */
	__u32 line;	      /* 0: not known */
	__u32 has_offset, has_address;
	__u32 padding; /* zero: codes are compared as bytes */
};

/* How many addresses have a name, and how many have none, by cause. */
struct code_account {
	__u64 named;
	__u64 no_pid;		/* the process is in no pid namespace of nhmtap's */
	__u64 no_mapping;	/* what the process had there is not known */
	__u64 no_file;		/* nothing is left of the file, or another one is at its path */
	__u64 no_symbol;	/* the file (or the kernel, or the JIT) does not say */
	__u64 refused;		/* what lies there is no file that is safe to open, or not this process's */
	__u64 failed;		/* reading the file has ended or held up who reads files */
	__u64 no_time;		/* the interval's time for names was over */
	__u64 ambiguous;	/* named or not: in this interval the process had two things there */
	const char *failed_why; /* why reading a file has failed last; NULL: it never has */
	const char *kernel_why; /* why a kernel address has no name; NULL: all have */
};

struct codes;

/*
 * Codes of addresses that came since `since`. `deadline`: what has no name by then gets none any more,
 * but its place; 0: none. `waiting`: until then a file that has to be read first is waited for; 0 where the
 * deadline is. All are CLOCK_MONOTONIC, ns. `background` may be NULL where no symbols are asked for. Both,
 * and the account, which is added to, stay the caller's.
 */
struct codes *codes_new(struct mappings *mappings, struct background *background,
			struct code_account *account, __u64 since, __u64 deadline, __u64 waiting);
void codes_release(struct codes *codes);

/* The number of what there is to say of an address, which came `count` times; detail: of enum
 * code_detail; comm: the thread's, of 16 bytes, or NULL (see mappings_find()). */
__u32 codes_number(struct codes *codes, unsigned int detail, pid_t pid, const char *comm, __u64 address,
		   __u64 count);

/* Valid up to the next number. */
const struct code *codes_at(const struct codes *codes, __u32 number);

bool address_is_kernel(__u64 address);

#endif
