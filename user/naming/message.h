/* SPDX-License-Identifier: GPL-2.0-only */
/* The messages between a process and its worker. Each is one packet of a socket. See worker.h. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/packet.h"
#include "naming/image.h"
#include "naming/symbols.h"
#include "naming/untyped.h"

#define MESSAGE_MOST  (1 << 16) /* bytes */
#define WHY_MOST      120
#define ASK_TEXT_MOST (3 * (64 + PATH_MAX)) /* texts after a question: see struct file_place */

/* The worker executes this program again under this name. Its socket has this descriptor number. */
#define WORKER_NAME "nhmtap-worker"
#define WORKER_FD   3
/* Follows the memory in its argument if it is to load what disassembles. */
#define WORKER_OF_CODE " code"

enum ask_kind {
	ASK_OPEN,   /* build-id of the file whose descriptor is passed; of the vdso if there is none */
	ASK_LOAD,   /* its symbols and lines; texts: struct file_place and struct debug_dirs */
	ASK_MAP,    /* symbols of the perf-PID.map whose descriptor is passed */
	ASK_NAME,   /* source lines of an address, and its symbol by an index */
	ASK_TABLE,  /* unwind table of the file whose descriptor is passed; of the vdso if there is none */
	ASK_FORGET, /* forgets a file's lines and indexes; there is no answer */
	ASK_CODE,   /* instructions at an offset (`address`) of the file whose descriptor is passed */
	ASK_TYPE,   /* type and field of a variable at an address */
	ASK_DATUM,  /* variable at an address, by an index of symbols */
	ASK_ACCESS, /* type and field of what the instruction at an address accesses */
	ASK_OPENED, /* the file that ANSWER_OPEN asked for; no descriptor: it can't be opened */
};

/* Whether a question is about what the worker keeps of a file, so that no other worker can answer it. */
static inline bool ask_is_of_known(__u32 kind)
{
	return kind == ASK_NAME || kind == ASK_TYPE || kind == ASK_DATUM || kind == ASK_ACCESS;
}

struct ask {
	__u32 kind;
	__u32 id; /* number of the file */
	__u64 address;
	__u64 most;	  /* see struct naming_settings, memory */
	__u64 lines_most; /* ASK_LOAD: memory for lines */
	__u32 lines;
	__u32 data;  /* ASK_LOAD: 1: symbols of data are wanted, too; 2: and types */
	__u32 few;   /* ASK_LOAD: see struct read_what */
	__u32 grows; /* ASK_MAP: see jit_symbols() */
};

enum answer_kind {
	ANSWER_DONE,
	ANSWER_OPEN,
	ANSWER_NEVER,  /* the worker can't be confined, so it reads nothing: `why` */
	ANSWER_MEMORY, /* the request takes more memory than allowed, and the worker ends */
};

/* A function that contains the address: see struct source_place. `function` and `file` are offsets in the
 * texts after the frames; -1: none. */
struct told_frame {
	__u32 function, file;
	__u32 line;
	__u32 unused;
	__u64 entry;
};

/* An instruction of code. */
struct told_instruction {
	__u32 size; /* bytes */
	char text[196];
};

/* Reasons why there are no instructions. */
#define CODE_LIBRARY                                                                                         \
	"code can't be shown as instructions: libcapstone is missing (apt-get install libcapstone4)"
#define CODE_BUILT   "code can't be shown as instructions: this nhmtap was built without libcapstone"
#define CODE_FAILED  "the code can't be read as instructions"
#define CODE_NOWHERE "the file has no code there"

/* What a file's lines lack, though it has DWARF. */
enum lines_lack {
	LINES_LACK_NOTHING,
	LINES_COMPRESSED,	 /* all: see dwarf_unreadable() */
	LINES_SHARED_ABSENT,	 /* what dwz has moved to a file that is not found */
	LINES_SHARED_COMPRESSED, /* the same, in a file that can't be read */
	LINES_SPLIT, /* what is in .dwo files: of a file, that there are some; of an address, that it is not
		      * found
		      */
	LINES_SPLIT_LARGE,	/* what is in a .dwo or .dwp file that takes too much memory */
	LINES_SPLIT_COMPRESSED, /* the same, in a file that can't be read */
	LINES_LARGE,		/* all: they take too much memory */
	LINES_SHARED_LARGE,	/* what dwz has moved to a file that takes too much memory */
	LINES_NO_ROOM,		/* all: those of other files leave no room */
	LINES_GO,		/* what is inlined: only Go's own table has lines */
	NR_LINES_LACK,
};

/* Reasons why there is no worker. */
#define WORKER_UNSTARTED "the process that reads files can't be started"
#define WORKER_RESTS	 "the process that reads files rests: files have ended it too often"
#define WORKER_MEMORY	 "reading the file takes more memory than it may"
#define NEVER_LIBRARY	 "the process that reads files can't be confined: libseccomp is missing"
#define NEVER_BUILT	 "the process that reads files can't be confined: this nhmtap was built without libseccomp"
#define NEVER_SECCOMP	 "the process that reads files can't be confined: seccomp is refused"

#define FRAMES_MAX 32 /* per name */

struct answer {
	__u32 kind;
	__u32 ours;	    /* ANSWER_OPEN: the debug file (its path is the text) is in nhmtap's own root */
	char why[WHY_MOST]; /* "": success */
	char build_id[2 * BUILD_ID_MAX + 1];
	__u64 counts[9];    /* number of items of each list in the memory that is passed, in their order */
	__u64 base;	    /* of an unwind table */
	__u64 kept_bytes;   /* memory that lines and indexes of symbols use in the worker */
	__u64 symbol_begin; /* see `symbol` */
	__u32 endless;	    /* see `symbol`: its end is not known */
	__u32 kept;	    /* the worker keeps lines or indexes of the file … */
	__u32 only_lines;   /* … and no indexes */
	__u32 indexed;	    /* its symbols of data are in an index */
	__u32 nr_frames;
	__u32 nr_text;	  /* bytes */
	__u32 lines_lack; /* enum lines_lack */
	__u32 no_room;	  /* symbols of the file were left out, because they take too much memory */
	__u32 half_line;  /* the last line of a map was left out: it may be a part of one */
	__u32 symbol;	  /* by an index: offset in the texts; -1: none */
};
