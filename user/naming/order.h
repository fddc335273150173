/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NHMTAP_ORDER_H
#define NHMTAP_ORDER_H

#include <stddef.h>

/*
 * Sorts elements of `size` bytes (a multiple of 8) by the __u64 that each begins with; equals keep their
 * order. In linear time: symbols are read by the ten thousand, and a comparison each would be most of
 * what reading them costs.
 */
void order_by_address(void *list, size_t nr, size_t size);

#endif
