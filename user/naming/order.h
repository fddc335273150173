/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stddef.h>

/*
 * Sorts elements of `size` bytes (a multiple of 8) by the __u64 at their begin. The sort is stable. It takes
 * linear time: files have tens of thousands of symbols, and sorting by comparison would take most of the time
 * of reading them.
 */
void order_by_address(void *list, size_t nr, size_t size);
