/* SPDX-License-Identifier: GPL-2.0-only */
/* nhmtap's own instructions, for its report of its own cost. */
#ifndef NHMTAP_SELF_H
#define NHMTAP_SELF_H

#include <stdbool.h>
#include <linux/types.h>

struct self;

/* Begins to count the instructions of this thread, not of others that it starts, with those of the kernel for
 * it where that is allowed. NULL where it can't be counted: a machine without a PMU, no permission. */
struct self *self_begin(void);

/* How many so far, read from the counter itself, without a system call, where the machine lets it
 * (libperf does). Returns false if it had no counter all the time. */
bool self_instructions(struct self *self, __u64 *instructions);

/* Whether the kernel's side is in it. */
bool self_has_kernel(const struct self *self);

void self_end(struct self *self);

#endif
