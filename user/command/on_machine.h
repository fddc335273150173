/* SPDX-License-Identifier: GPL-2.0-only */
/* --machine: the command line of nhmtap is executed again on the emulated machine. */
#pragma once

#include "base/refusal.h"
#include "option/options.h"

/*
 * Replaces this process by one that runs the same command line, without --machine, on the emulated machine.
 * What can't work there is refused before it boots. Returns only with a refusal: its status.
 */
int on_machine(const struct options *options, int argc, char **argv, struct refusal *refusal);
