/* SPDX-License-Identifier: GPL-2.0-only */
/* What lines are made of, for what else reads the same DWARF: types. */
#pragma once

#include <stdbool.h>
#include <elfutils/libdw.h>

#include "confined/lines.h"
#include "confined/split_unit.h"
#include "naming/image.h"
#include "naming/spans.h"

/* A function. */
struct inlined_function {
	Dwarf_Die die;
	struct inlined_calls *calls; /* NULL: not read yet */
};

/* The inlined calls in a function. */
struct inlined_calls {
	struct spans spans; /* `what` is an index of `list` */
	struct call {
		Dwarf_Die die;
		__u32 in; /* index of the call that it is inlined in; SPANS_NONE: the function itself */
	} * list;
	size_t nr, room;
};

struct unit {
	Dwarf_Die die;
	Dwarf_Die inside;	  /* what has its functions: the same, or the unit in `split` */
	bool skeleton, has_split; /* its functions are in another file; that is open */
	bool opened;		  /* that was tried */
	enum lines_lack lack;	  /* see lines_lack() */
	struct split_unit split;
	/* For types.c: the variables of the unit in `split`, see variable_spans of struct lines. */
	bool looked_for_variables;
	struct spans variable_spans[2];
	__u64 base;	    /* that ranges in `split` begin at if they do not say so; 0: they do */
	bool looked, rows;  /* the members below are set; it has a line table */
	bool looked_inside; /* `nested` is set */
	Dwarf_Files *files;
	const char *folder;  /* where it was compiled */
	struct spans spans;  /* of functions; `what` is an index of `functions` */
	struct spans nested; /* of functions within functions: the same */
	struct inlined_function *functions;
	size_t nr, room;
};

/* An address in the program's table that a unit in another file refers to. */
struct split_address {
	__u64 address;
	__u32 unit;
};

struct lines {
	struct image image, alternate;
	Dwarf *dwarf, *alternate_dwarf;
	struct spans spans; /* `what` is an index of `units` */
	struct unit *units;
	size_t nr, room;
	size_t bytes, most;	   /* in use, of so many */
	size_t image_bytes;	   /* of `bytes`: the sections' */
	size_t begun_bytes;	   /* of `bytes`: before anything was read of a unit */
	size_t steps;		   /* steps that are left: a walk ends when there are none */
	Dwarf_Off furthest;	   /* the last entry in the file visited by the current walk */
	struct split_place *split; /* NULL: see lines_split() */
	enum lines_lack lack;	   /* see lines_lack() */
	const struct unit *within; /* whose ranges are being read */
	/* For types.c: variables with a fixed address, by it, and those of threads, by their place. */
	bool looked_for_variables;
	struct spans variable_spans[2]; /* `what` is an index of `variables` */
	Dwarf_Die *variables;
	size_t nr_variables, room_variables;
	size_t looked_for_g;		       /* so many of them were looked at for Go's first goroutine */
	Dwarf_Die g;			       /* .addr is NULL: it was not found */
	struct split_address *split_addresses; /* in their order */
	size_t nr_split_addresses;
	size_t all_steps; /* what `steps` began with */
};

/* Opens what a unit has in another file, once, if it has something there. */
void lines_open_unit(struct lines *lines, struct unit *unit);

/* Moves to the next sibling of this entry. Returns false if there is none, or if no steps are left. */
bool lines_next(struct lines *lines, Dwarf_Die *die);

/* Goes to the first child of an entry at this depth. Returns false if there is none, or if no steps are left.
 */
bool lines_descend(struct lines *lines, Dwarf_Die *in, Dwarf_Die *die, int depth);

/* The text of an attribute of this entry itself; NULL: it has none. */
const char *lines_text(const struct lines *lines, Dwarf_Die *die, unsigned int name);

/* Goes to the entry that an attribute refers to. Returns false if it refers to none that can be read. */
bool lines_follow(const struct lines *lines, Dwarf_Die *die, unsigned int name);

/* Takes an attribute that is the location of data, in a form that libdw reads one in. */
bool lines_location(Dwarf_Die *die, unsigned int name, Dwarf_Attribute *location);

/* Finds the function, not an inlined one, that contains the address. */
bool lines_function(struct lines *lines, __u64 address, Dwarf_Die *die);
