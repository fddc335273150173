/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps one of every n samples of a stream while they come faster than they can be written (--adaptive). Of n
 * samples in a row one is kept, each with the same chance, so that what a program does in step with n is not
 * preferred. What was kept says n, so its sum estimates all.
 */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#define THINNING_MOST	(1U << 16)
#define THINNING_LEVELS 1024 /* of a queue */

struct thinning {
	bool on;	    /* otherwise all are kept */
	unsigned int every; /* n; 0: it has not begun, which means 1 */
	__u64 calm_ns;	    /* since when samples could be written as fast as they came, CLOCK_MONOTONIC */
	__u64 doubled_ns;   /* when n was doubled last */
	unsigned int level; /* of the queue when n was doubled last; 0 while it is less than half full */
	__u64 seed;
	__u64 left_out; /* samples */
};

/* The n samples in a row of an event that are being taken. Starts as zeros. */
struct thinned_row {
	unsigned int every, taken, kept;
};

/*
 * Adapts n to how fast samples can be written. `behind`: whether the rings are half full or more; `level`:
 * how many THINNING_LEVELS of the fullest queue are. What waits in a queue was kept before n had its present
 * value, so n is doubled only if the queue goes on filling, or stays full for a while. It is halved after a
 * second in which neither was half full.
 */
void thinning_adapt(struct thinning *thinning, bool behind, unsigned int level, __u64 now);

/* Takes the next sample. Returns the n that it stands for; 0: it is left out. */
unsigned int thinning_take(struct thinning *thinning, struct thinned_row *row);
