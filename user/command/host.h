/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include "host/host.h"
#include "base/refusal.h"
#include "option/options.h"

/* Gathers the host that --host-root, --events-dir and --cpu select. Returns 0, or -1 with the refusal. The
 * caller calls host_release() in either case. */
int command_host(struct host *host, const struct options *options, struct refusal *refusal);
