/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes and threads that an activity measures, watched until they have ended. */
#ifndef NHMTAP_TARGETS_H
#define NHMTAP_TARGETS_H

#include "plan/target.h"
#include "session/loop.h"

struct targets;

/*
 * Calls `gone` once, from the loop, when all processes and threads that the target names have ended; at once
 * if they have already. NULL where it names none. Uses pidfds (pidfd_open(2)), and polls every 100 ms where
 * the kernel gives none: before Linux 6.9 for threads, and where a seccomp profile refuses.
 */
struct targets *targets_watch(const struct target *target, struct loop *loop, due_fn gone, void *context);
void targets_release(struct targets *targets);

#endif
