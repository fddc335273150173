/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * --where: a condition on samples, which the BPF program checks before it counts one. Comparisons of a field
 * with a constant, joined by && and ||, with ! and parentheses, as in C:
 *
 *	latency>=100 && source==remote_dram && comm=="db"
 *
 * Compiled, it is a list of comparisons that says where to go on after each: to a later one, or to the
 * result.
 */
#pragma once

#include <stdbool.h>

#include "base/refusal.h"
#include "event/event.h"
#include "host/host.h"
#include "shared.h"

struct where {
	struct where_term terms[WHERE_TERMS];
	size_t nr; /* 0: every sample is wanted */
};

/* Compiles the text. `fields`: a list of those that the program can tell, of
 * "ip,pid,tid,cpu,comm,cgroup,period,addr,latency,source". Returns 0, or -1 with the refusal, which names
 * the column. */
int where_compile(struct where *condition, const char *text, const char *fields, const struct host *host,
		  struct refusal *refusal);

/* Whether the text has the name of a field, in quotation marks or not; NULL: there is no text. */
bool where_mentions(const char *text, const char *field);

/* Refuses a condition on what samples of the event don't have: those of what the kernel counts in software
 * have no latency and no source. Returns 0, or -1 with the refusal. */
int where_check(const struct where *condition, const char *text, const struct event *event,
		struct refusal *refusal);
