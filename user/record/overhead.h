/* SPDX-License-Identifier: GPL-2.0-only */
/* The cost of nhmtap itself so far: this process and the worker processes that read files for it, but no
 * other children. */
#pragma once

#include <jansson.h>

#include "collection/self.h"

/* User and system time in ns. */
__u64 own_cpu_ns(void);

/* The member `overhead` of the end record. `self` is NULL if nhmtap's own instructions are not counted.
 * Returns a new reference. */
json_t *overhead_value(struct self *self);
