/* SPDX-License-Identifier: GPL-2.0-only */
/* Waiting for a descriptor up to a moment, though signals come. */
#pragma once

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <linux/types.h>

#include "base/clock.h"

/* Whether something can be read from the descriptor by `deadline` (CLOCK_MONOTONIC, ns); looks once if that
 * is past. */
static inline bool readable_by(int fd, __u64 deadline)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	for (;;) {
		__u64 now = clock_ns(CLOCK_MONOTONIC);
		int got = poll(&ready, 1, now < deadline ? (int)((deadline - now + 999999) / 1000000) : 0);

		if (got > 0)
			return true;
		if (now >= deadline || (got < 0 && errno != EINTR))
			return false;
	}
}
