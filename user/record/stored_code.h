/* SPDX-License-Identifier: GPL-2.0-only */
/* Code in stored records: names are added to code for which the record has only a place. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "naming/naming.h"

/* Totals over all records. */
struct stored_account {
	size_t named, unnamed;
	const char *why;	/* reason of the last one of those without a name */
	const char *kernel_why; /* the same for addresses of the kernel */
	const char *lines_why;	/* why a file has no source lines; NULL: none is known */
};

/* The member of a record whose elements have code as a key: "entries", "frames"; NULL if the record's type
 * has none. */
const char *stored_list(const json_t *record);

/*
 * Adds names to the code in one element of the record's list. An address of the kernel in `ip` gets a `code`
 * member. Code that has a symbol is not changed. `kernel` says that the kernel's symbols in `naming` are of
 * the kernel that the record is from. Returns whether anything was added.
 */
bool stored_name(const json_t *record, json_t *element, struct naming *naming, bool kernel,
		 struct stored_account *account);

/* The same for the record of a single sample or branch; does nothing to other records. */
bool stored_name_single(json_t *record, struct naming *naming, bool kernel, struct stored_account *account);

/* The most bytes of a code value, so that two of them fit into a record with everything else. If there is not
 * enough room, inlined functions are left out, and then the name. */
#define STORED_NAME_MAX 2900
