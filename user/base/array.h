/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NHMTAP_ARRAY_H
#define NHMTAP_ARRAY_H

/* The number of an array's elements. Not for a pointer. */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
