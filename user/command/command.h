/* SPDX-License-Identifier: GPL-2.0-only */
/* The subcommands. Each takes the arguments behind its name and returns the exit status; what is to
 * be said on stderr is in the refusal (asked not empty). */
#ifndef NHMTAP_COMMAND_H
#define NHMTAP_COMMAND_H

#include "host/host.h"
#include "options.h"
#include "refusal.h"

int command_stat(const struct options *options, struct refusal *refusal);
int command_profile(const struct options *options, struct refusal *refusal);
int command_mem(const struct options *options, struct refusal *refusal);
int command_offcore(const struct options *options, struct refusal *refusal);
int command_branch(const struct options *options, struct refusal *refusal);
int command_flamegraph(const struct options *options, struct refusal *refusal);
int command_explain(const struct options *options, struct refusal *refusal);
int command_doctor(const struct options *options, struct refusal *refusal);
int command_list(const struct options *options, struct refusal *refusal);
int command_symbolize(const struct options *options, struct refusal *refusal);
int command_schema(const struct options *options, struct refusal *refusal);

/* The host that --host-root and --cpu speak of. Returns 0, or -1 with the refusal. */
int command_host(struct host *host, const struct options *options, struct refusal *refusal);

#endif
