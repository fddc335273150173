/* SPDX-License-Identifier: GPL-2.0-only */
/* nhmtap analyze of stored records, and of what differs between two. */
#pragma once

#include <stdbool.h>

#include "base/refusal.h"
#include "metric/expectation.h"
#include "option/options.h"

/* Whether the words are files of records, or records come from stdin, instead of a target. */
bool stored_asked(const struct options *options);

/* Tells of the records where the cycles went and, of a second file, what is different. `expect` are limits
 * of shares. Returns the exit status. */
int stored_analyze(const struct options *options, const struct texts *expect, struct refusal *refusal);
