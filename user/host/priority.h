/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The share of a CPU that this thread gets beside others. A stream is read by a thread that needs up to a
 * core. As one of several that want to run it gets less, which is too little for every sample of the others,
 * and waits for its turn while they fill the rings: with three busy programs on two CPUs, half of the samples
 * were lost.
 */
#pragma once

/* Has the calling thread run before others, if it may (CAP_SYS_NICE) and was started with the usual priority:
 * with another one somebody has chosen it. Its threads and child processes have the usual priority. */
void priority_raise(void);

/* Gives it the usual priority again, if priority_raise() has changed it. */
void priority_lower(void);
