/* SPDX-License-Identifier: GPL-2.0-only */
/* How far shares of samples can be trusted. */
#pragma once

/* Standard deviations to either side of the mean that hold 95 %. */
#define NORMAL_95 1.96

/* The variance that a weight has because samples come by chance, if each stands for the same. 0 if there are
 * none. */
double share_square(double weight, double samples);

/*
 * Returns how far a part's share of the whole may be off, as a number from 0 to 1: to the farther end of
 * Wilson's interval of 95 %, so that few samples have a bound even where all are of one part. It is that of
 * as many equal samples as would make the share vary as much, and of no more than (sum of w)² / (sum of w²),
 * what samples of the weights w are worth. 0: nothing is known of the samples.
 *
 * `square` is share_square() of the part, `squares` the sum of those of all parts.
 */
double share_error(double weight, double square, double whole, double squares);
