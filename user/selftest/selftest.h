/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether what nhmtap says of this machine is true: a program of which everything is known is measured by
 * nhmtap itself, as a user would, and what comes is compared with what is known.
 */
#ifndef NHMTAP_SELFTEST_H
#define NHMTAP_SELFTEST_H

#include <stddef.h>
#include <jansson.h>

#include "host/host.h"
#include "refusal.h"

struct selftest {
	struct host *host;
	char program[4096]; /* the program of known answers, nhmtap-known */
	char self[4096];    /* nhmtap */
};

/* Finds the program, which is installed in lib/nhmtap beside the folder of nhmtap, and stands beside it where
 * it was built. Returns 0, or -1 with the refusal. */
int selftest_find(struct selftest *selftest, struct host *host, struct refusal *refusal);

extern const size_t nr_selftests;

/* The i-th test's name: "counts". */
const char *selftest_name(size_t i);

/* Runs the i-th test. Returns its record, a new reference: its verdict is "passed", "failed" or, where this
 * machine can't do it, "left_out". */
json_t *selftest_run(const struct selftest *selftest, size_t i);

#endif
