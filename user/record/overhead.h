/* SPDX-License-Identifier: GPL-2.0-only */
/* What nhmtap itself cost so far: this process, its children left out. */
#ifndef NHMTAP_OVERHEAD_H
#define NHMTAP_OVERHEAD_H

#include <jansson.h>

#include "collection/self.h"

/* The end record's `overhead`; self is NULL where instructions are not counted. A new reference. */
json_t *overhead_value(struct self *self);

#endif
