/* SPDX-License-Identifier: GPL-2.0-only */
/* What nhmtap itself cost so far: this process, its children left out. */
#ifndef NHMTAP_OVERHEAD_H
#define NHMTAP_OVERHEAD_H

#include <jansson.h>

/* The end record's `overhead`; a new reference. */
json_t *overhead_value(void);

#endif
