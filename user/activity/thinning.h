/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps one of every n samples of a stream while they come faster than they can be written (--adaptive). Of n
 * samples in a row one is kept, each with the same chance, so that what a program does in step with n is not
 * preferred. What was kept says n, so its sum estimates all.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#define THINNING_MOST (1U << 16)

struct thinning {
	bool on;	    /* otherwise all are kept */
	unsigned int every; /* n; 0: it has not begun, which means 1 */
	__u64 calm_ns;	    /* since when samples could be written as fast as they came, CLOCK_MONOTONIC */
	__u64 seed;
	__u64 left_out; /* samples */
};

/* The n samples in a row of an event that are being taken. Starts as zeros. */
struct thinned_row {
	unsigned int every, taken, kept;
};

/* Doubles n if the samples come too fast, and halves it after a second in which they did not. */
void thinning_adapt(struct thinning *thinning, bool too_fast, __u64 now);

/* Takes the next sample. Returns the n that it stands for; 0: it is left out. */
unsigned int thinning_take(struct thinning *thinning, struct thinned_row *row);
