/* SPDX-License-Identifier: GPL-2.0-only */
/* Where loads found their data: the kernel's perf_mem_data_src as the guide's codes (Table 16). */
#ifndef NHMTAP_SOURCE_H
#define NHMTAP_SOURCE_H

#include <stdbool.h>
#include <jansson.h>

#include "host/host.h"

/* The name of the code that the kernel has made this value of, by the CPU's table; "unmeasured" where
 * the event has no source; the value in hex where the table has no such code. A new reference. */
json_t *source_name(const struct host *host, __u64 data_src);

/* Puts name, codes, the guide's meaning and perf's words into a record. Several codes of which the
 * kernel makes the same value cannot be told apart: the others' names are in `folded`. */
void put_source(json_t *record, const struct host *host, __u64 data_src);

/* Whether another core's cache, of this package or another, had the line: modified, or in any state. */
bool source_modified(__u64 data_src);
bool source_other_core(__u64 data_src);

#endif
