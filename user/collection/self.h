/* SPDX-License-Identifier: GPL-2.0-only */
/* nhmtap's own instructions, which it reports as part of its cost. */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

struct self;

/* Starts to count the instructions of the calling thread, without threads that it starts, and including the
 * kernel's on its behalf if that is permitted. Returns NULL if they can't be counted: no PMU, or no
 * permission. The caller owns it up to self_end(). */
struct self *self_begin(void);

/* Gives the number of instructions so far. It is read from the counter itself, without a system call, if the
 * machine allows that (libperf does it). Returns false if the event did not have a counter all the time. */
bool self_instructions(struct self *self, __u64 *instructions);

/* Whether the kernel's instructions are included. */
bool self_has_kernel(const struct self *self);

void self_end(struct self *self);
