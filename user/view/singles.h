/* SPDX-License-Identifier: GPL-2.0-only */
/* Single samples of nhmtap stream as the records of sums that views are made from. */
#pragma once

#include <jansson.h>

/*
 * Hands over what a record of type sample stands for: a record of type profile, or mem if it has a latency,
 * of one entry, and before it one of type frames if it has a stack. They keep sample_time, which tells them
 * from others. The records are not kept.
 */
void single_take(const json_t *sample, void (*take)(void *of, const json_t *record), void *of);
