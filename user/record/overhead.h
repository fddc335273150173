/* SPDX-License-Identifier: GPL-2.0-only */
/* What nhmtap itself cost so far: this process and those that read files for it; other children are left out.
 */
#ifndef NHMTAP_OVERHEAD_H
#define NHMTAP_OVERHEAD_H

#include <jansson.h>

#include "collection/self.h"

/* User and system time. */
__u64 own_cpu_ns(void);

/* The end record's `overhead`; self is NULL where instructions are not counted. A new reference. */
json_t *overhead_value(struct self *self);

#endif
