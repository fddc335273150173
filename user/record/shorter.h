/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NHMTAP_SHORTER_H
#define NHMTAP_SHORTER_H

#include <stddef.h>
#include <jansson.h>

/* Returns a copy of a value whose longest texts are cut, and then end with "…", until it has at most `most`
 * bytes as compact JSON. Numbers and the members of objects stay. */
json_t *value_shorter(const json_t *value, size_t most);

#endif
