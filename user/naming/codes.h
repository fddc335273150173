/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Descriptions of code for records. For each address of a process, the module, function and source line are
 * looked up, as far as they were asked for. What has no name is described by its place, so that the name can
 * be looked up later. Addresses with equal descriptions share one code, which has a number.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

#include "naming/background.h"
#include "naming/ksymbols.h"
#include "naming/mappings.h"

/* What is to be looked up; a combination of: */
enum code_detail {
	CODE_MODULE = 1 << 0,
	CODE_PLACE = 1 << 1,  /* module, and the offset in it; no file is read for it */
	CODE_SYMBOL = 1 << 2, /* module and function; the function's place if it has no name, or the code's */
	CODE_LINE =
		1 << 3, /* the same, plus the source line and the inlined functions, or the code's place */
	CODE_LINKAGE = 1 << 5,	       /* in addition to CODE_SYMBOL or CODE_LINE: mangled names */
	CODE_VARIABLE = 1 << 6,	       /* of data: the variable, and what it is in; see codes_datum() */
	CODE_VARIABLE_OFFSET = 1 << 7, /* the same, and the offset in the variable */
	CODE_TYPE = 1 << 8,	       /* of data: its type, and the field in it */
	CODE_INLINED =
		1 << 9, /* in addition to CODE_SYMBOL: the names of the inlined functions, without lines */
	CODE_RETURN = 1 << 4, /* in addition: the address is a return address, and the call is to be named */
};

/* What is looked up of data. */
#define CODE_OF_DATA (CODE_VARIABLE | CODE_VARIABLE_OFFSET | CODE_TYPE)

/* Each text is stored once, so pointers can be compared. NULL: not known, or not asked for. */
struct code {
	const char *module;	  /* "/usr/bin/true", "[vdso]", "[anon]", "[kernel]", "[ext4]" */
	const char *build_id;	  /* only set together with `offset` */
	const char *symbol;	  /* the function */
	const char *linkage;	  /* its mangled name, if it has one and CODE_LINKAGE asked for it */
	const char *file;	  /* its source file, with `line`; it may be an inlined function's */
	const char *type, *field; /* of data, if its type was asked for */
	const char *untyped;	  /* why the type is not known: one of code_untyped_words */
	const char *inlined;	  /* the functions inlined there, as a JSON list, innermost first */
	__u64 offset;		  /* in the file; set if there is no symbol, or for CODE_PLACE */
	__u64 address;		  /* instead of `offset`: the kernel's, a JIT's, or of an unknown module */
	__u64 function;		  /* where in the file a function begins that has no name; for CODE_SYMBOL,
				   * `offset` is the same
				   */
	__u32 line;		  /* 0: not known */
	__u32 has_offset, has_address;
	__u32 has_function;
};

/* Why data has no type, as words of records; a list that ends with NULL. */
extern const char *const code_untyped_words[];
#define UNTYPED_WORDS_MOST 16

/* The same for addresses of data. */
struct data_account {
	bool asked; /* names of data were asked for */
	__u64 named;
	__u64 no_address;  /* the sample has none */
	__u64 kernel;	   /* it is the kernel's, of whose data no symbols are read */
	__u64 no_variable; /* it is the stack, the heap, or other memory or a file that the program has mapped
			    */
	__u64 no_mapping;  /* it is not known what the process had mapped there */
	__u64 no_symbol;   /* the file has no symbol there */
	__u64 no_file;	   /* the file can't be read, or the memory for names has no room for its symbols */
	__u64 no_time;	   /* the time for names of this interval was used up */
	__u64 ambiguous;   /* named or not: the process had two files' data there in this interval */
	bool types_asked;
	__u64 typed, untyped[UNTYPED_WORDS_MOST]; /* by the number of the word */
};

/* Number of addresses with a name, and of those without one by cause. */
struct code_account {
	__u64 named;
	__u64 no_pid;		/* the process is not visible in nhmtap's pid namespace */
	__u64 no_mapping;	/* it is not known what the process had mapped there */
	__u64 no_file;		/* the file is gone, or another file is at its path */
	__u64 no_symbol;	/* the file (or the kernel, or the JIT) has no symbol there */
	__u64 refused;		/* the file at this path is not safe to open, or not this process's */
	__u64 failed;		/* the worker died or hung while it read the file, or there is no worker */
	__u64 no_room;		/* the memory for names has no room for the file's symbols */
	__u64 no_time;		/* the time for names of this interval was used up */
	__u64 ambiguous;	/* named or not: the process had two mappings there in this interval */
	const char *failed_why; /* why reading a file failed last time; NULL: it never failed */
	const char *lines_why;	/* why a file has no source lines; NULL: none is known */
	const char *kernel_why; /* why kernel addresses have no name; NULL: all have one */
	struct data_account data;
};

struct codes;

/*
 * Creates codes for the addresses of the interval that began at `since`. After `deadline` no more names are
 * looked up, and addresses are described by their place; 0: no deadline. Until `waiting`, a lookup waits for
 * a file that must be read first; 0 if there is no deadline. All are CLOCK_MONOTONIC, ns. `data` has the
 * mappings of data, and may be NULL if no names of data are asked for; likewise `background` for symbols. The
 * caller owns the mappings, the ksymbols, the background and the account; results are added to the account.
 */
struct codes *codes_new(struct mappings *mappings, struct mappings *data, const struct ksymbols *ksymbols,
			struct background *background, struct code_account *account, __u64 since,
			__u64 deadline, __u64 waiting);
void codes_release(struct codes *codes);

/* Says when the addresses that follow were seen: CLOCK_MONOTONIC, ns; 0, as in the beginning: at any time
 * since the interval began. */
void codes_seen(struct codes *codes, __u64 moment);

/* Returns the number of an address's code and adds `count`, the number of times the address was seen, to the
 * account. `detail`: see enum code_detail. `comm`: the thread's, 16 bytes, or NULL (see mappings_find()). */
__u32 codes_number(struct codes *codes, unsigned int detail, pid_t pid, const char *comm, __u64 address,
		   __u64 count);

/* The same, but if there is no time for the name (see codes_time()), counts nothing and returns false. */
bool codes_try(struct codes *codes, unsigned int detail, pid_t pid, const char *comm, __u64 address,
	       __u64 count, __u32 *number);

/* An address of data. */
struct datum {
	__u64 address, ip; /* ip: of the instruction, for the type */
	pid_t pid;
	const char *comm; /* see codes_number() */
	unsigned int detail;
};

/*
 * Sets the number of the description of data: `symbol` is the variable, and `module` the file that has it, or
 * the name of the mapping: "[heap]", "[stack]", "[anon]". Adds `count` to the account. Returns false, and
 * counts nothing, if there is no time for the name and `waits` is set.
 */
bool codes_datum(struct codes *codes, const struct datum *datum, __u64 count, bool waits, __u32 *number);

/* Changes `deadline` and `waiting`: see codes_new(). */
void codes_time(struct codes *codes, __u64 deadline, __u64 waiting);

/* Changes `since`: see codes_new(). */
void codes_since(struct codes *codes, __u64 since);

/* Has names that are not known yet looked up there. */
void codes_look_in(struct codes *codes, struct background *background);

/* The number of codes, and of the places that they are known by. */
size_t codes_nr(const struct codes *codes);
size_t codes_nr_places(const struct codes *codes);

/* Forgets by which places the codes are known, so that no file is kept for these. Codes keep their numbers.
 */
void codes_forget_places(struct codes *codes);

/* Memory for the codes' texts: paths and names. */
size_t codes_text_bytes(const struct codes *codes);

/* Forgets all places, and the codes whose number is not `used`. The others get new numbers: numbers[old] is
 * set to the new one. Both lists have codes_nr() items. */
void codes_keep(struct codes *codes, const bool *used, __u32 *numbers);

/* The returned pointer is valid until the next call of codes_number(). */
const struct code *codes_at(const struct codes *codes, __u32 number);

bool address_is_kernel(__u64 address);

/* Whether the code's place is the instruction's own, rather than its function's. */
bool code_tells_address(const struct code *code);
