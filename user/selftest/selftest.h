/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests whether what nhmtap says about this machine is true: nhmtap measures a program about which everything
 * is known, in the same way as a user would, and the results are compared with what is known. */
#pragma once

#include <stddef.h>
#include <jansson.h>

#include "base/refusal.h"
#include "host/host.h"

struct selftest {
	struct host *host;
	char program[4096]; /* the known-answer program, nhmtap-known */
	char self[4096];    /* nhmtap */
};

/* Finds the program. If installed, it is in lib/nhmtap next to the folder of nhmtap; in the build folder it
 * is next to nhmtap. Returns 0, or -1 with the refusal. */
int selftest_find(struct selftest *selftest, struct host *host, struct refusal *refusal);

extern const size_t nr_selftests;

/* The name of the i-th test: "counts". */
const char *selftest_name(size_t i);

/* Runs the i-th test. Returns its record, a new reference. Its verdict is "passed", "failed", or "left_out"
 * if this machine does not support it. */
json_t *selftest_run(const struct selftest *selftest, size_t i);
