/* SPDX-License-Identifier: GPL-2.0-only */
/* Single samples of nhmtap stream as the records of sums that views are made from. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

/* Activities whose samples are in records of sums as well, as those of mem --stream are. Starts as {0}. */
struct summed_up {
	json_t *activities; /* {name: whether it is one}; NULL: none has started */
};

/* Takes in start records. Returns whether the record is a sample that other records have summed up. */
bool is_summed_up(struct summed_up *summed, const json_t *record);
void summed_up_release(struct summed_up *summed);

/* The type of the record that a record of type sample stands for: mem if it has a latency, or profile. */
const char *single_type(const json_t *sample);

/*
 * Hands over what a record of type sample stands for: a record of type single_type(), of one entry, and
 * before it one of type frames if it has a stack. They keep sample_time, which tells them from others. The
 * records are not kept.
 */
void single_take(const json_t *sample, void (*take)(void *of, const json_t *record), void *of);
