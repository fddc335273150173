/* SPDX-License-Identifier: GPL-2.0-only */
/* Decides whether the stacks of samples are walked by tables: see unwind/unwinding.h. */
#pragma once

#include <stdbool.h>

#include "base/refusal.h"
#include "host/host.h"
#include "option/options.h"

/* Why stacks can't be walked by tables here, as a sentence without a full stop; NULL if they can. */
const char *unwind_forbidden(const struct host *host);

/* Sets *tables to whether tables are used. Sets *why to the reason if they are not and the options leave the
 * choice open, else to NULL. Returns 0, or -1 with the refusal. */
int plan_unwind(const struct options *options, const struct host *host, bool *tables, const char **why,
		struct refusal *refusal);
