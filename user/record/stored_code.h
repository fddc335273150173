/* SPDX-License-Identifier: GPL-2.0-only */
/* Code in records that were stored: names are added where the record has only places. */
#ifndef NHMTAP_STORED_CODE_H
#define NHMTAP_STORED_CODE_H

#include <stdbool.h>
#include <jansson.h>

#include "naming/naming.h"

/* What became of the code in the records. */
struct stored_account {
	size_t named, unnamed;
	const char *why;	/* the last one that has no name has none */
	const char *kernel_why; /* the same of the kernel's addresses */
};

/* The member of a record that is a list in which code is a key: "entries", "frames"; NULL if its type has
 * none. */
const char *stored_list(const json_t *record);

/*
 * Adds names to the code of one element of the record's list; a kernel's address that stands as `ip` gets a
 * `code` for it. What has a symbol already is left as it is. `kernel`: whether the kernel's symbols that
 * `naming` has are those of the kernel that the record is from. Returns whether anything was added.
 */
bool stored_name(const json_t *record, json_t *element, struct naming *naming, bool kernel,
		 struct stored_account *account);

/* No code becomes longer: two of them fit into a record, with all else. Inlined functions that do not fit
 * are left out, then the name. */
#define STORED_NAME_MAX 2900

#endif
