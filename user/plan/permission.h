/* SPDX-License-Identifier: GPL-2.0-only */
/* What a process needs from its machine to be allowed to measure, item by item, and whether it has it. Pure:
 * it depends on facts about the host alone. Sources: sysctl/kernel.rst, capabilities(7),
 * perf-security.rst. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/refusal.h"
#include "host/host.h"
#include "host/processor.h"

struct permission {
	const char *name;
	enum { PERMISSION_NUMBER, PERMISSION_WORD } kind;
	long long number;
	char word[32];
	bool ok;		/* it does not hinder anything */
	struct refusal refusal; /* if not ok: what it hinders, why, and the next step */
};

#define NR_PERMISSIONS 14

/* Fills in all permissions, in a fixed order. */
void permissions_judge(struct permission list[NR_PERMISSIONS], struct host *host);
