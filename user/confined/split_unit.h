/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Units of split DWARF (-gsplit-dwarf), whose functions are in a .dwo file, or with those of other units in a
 * .dwp file (dwp, llvm-dwp) beside the program. The program itself has a skeleton of each unit. libdw 0.188
 * would open the file by itself, which the process may not, and reads no .dwp files. So it is given an image
 * of one unit, made of that unit's parts and the program's table of addresses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <elfutils/libdw.h>

#include "naming/debug_file.h"
#include "naming/image.h"
#include "naming/message.h"

struct split_unit {
	struct image image; /* in memory */
	Dwarf *dwarf;
	Dwarf_Die die;
	size_t bytes; /* of the image */
};

/* Where files with such units are searched. */
struct split_place {
	struct file_place place; /* of the program */
	open_debug_fn open;
	bool looked; /* for the .dwp file */
	bool has_package;
	struct image package;
	enum lines_lack lack; /* why what was looked for last is not known */
};

/* What a skeleton names its file; both may be NULL. */
struct split_name {
	const char *file, *folder; /* the .dwo file, and where its path begins at */
};

/* Opens what belongs to the skeleton, by the id that both have. `of` is the image with the skeleton. The unit
 * takes at most `most` bytes. Returns whether it is found; then split_unit_close() is needed. */
bool split_unit_open(struct split_unit *unit, const struct image *of, Dwarf_Die *skeleton,
		     const struct split_name *called, struct split_place *where, size_t most);
void split_unit_close(struct split_unit *unit);

void split_place_release(struct split_place *where);

/* Where the skeleton's addresses begin in the program's table of them, which is image_section()'s
 * .debug_addr.
 */
__u64 split_addresses(Dwarf_Die *skeleton);
