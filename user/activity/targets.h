/* SPDX-License-Identifier: GPL-2.0-only */
/* Watches the processes and threads that an activity measures until they have ended. */
#pragma once

#include "collection/counters.h"
#include "plan/target.h"
#include "session/loop.h"

struct targets;

/*
 * Calls `gone` once, from the loop, when all processes and threads of the target have ended, even if they had
 * before. Returns NULL if the target names none. Uses pidfds (pidfd_open(2)). If the kernel provides none
 * (for threads before Linux 6.9, or because of a seccomp profile), polls every 100 ms. A thread that executes
 * a program gets its process's id, and is watched by that from then on; the counters, which must live longer
 * than the result, know whether it did.
 */
struct targets *targets_watch(const struct target *target, struct loop *loop, struct counters *counters,
			      due_fn gone, void *context);
void targets_release(struct targets *targets);
