/* SPDX-License-Identifier: GPL-2.0-only */
/* The findings of nhmtap doctor in short: what works, each reason once, and what mends them. */
#ifndef NHMTAP_SUMMARY_H
#define NHMTAP_SUMMARY_H

#include <jansson.h>

/*
 * A diagnosis record: "works", the names of what works; "reasons", each with the names of all that it
 * stops, those that stop most first; "remedies", each with what it mends, the smallest change first.
 * `findings` are the records of permissions, counters and facilities, borrowed. A new reference.
 */
json_t *diagnosis_record(const json_t *findings);

#endif
