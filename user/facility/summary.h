/* SPDX-License-Identifier: GPL-2.0-only */
/* The summary of the findings of nhmtap doctor: what works, each reason why something does not, and what
 * mends it. */
#pragma once

#include <jansson.h>

/*
 * Makes the diagnosis record: "works", names of what works; "reasons", each with the names of all that it
 * stops, sorted by falling number of these; "remedies", each with the names of what it mends, the smallest
 * change first. `findings` are the records of permissions, counters and facilities, which are borrowed.
 * Returns a new reference.
 */
json_t *diagnosis_record(const json_t *findings);
