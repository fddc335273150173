/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads CONFIG, a session as a JSON file. Its activities have members with the names and values of the
 * command line's options. */
#pragma once

#include "base/refusal.h"
#include "run/run.h"

#define CONFIG_MOST (1 << 20) /* bytes */

/*
 * Reads and checks CONFIG. `command`: COMMAND …, the target of activities that name none; NULL if there is
 * none. Errors are reported with the JSON pointer (RFC 6901) of their place. Returns 0, or -1 with the
 * refusal (status 1). With `check`, all mistakes are found: request->found has those before the refusal. The
 * caller must call request_release() in any case.
 */
int config_read(struct request *request, const char *path, char **command, bool check,
		struct refusal *refusal);

/* Reads it again for a running session, whose request is `before`. Refuses changes of anything but activities
 * and outputs. */
int config_read_again(struct request *request, const struct request *before, struct refusal *refusal);

/* Returns a copy of CONFIG with its variables replaced; to be read as CONFIG again, it has $${ for each ${.
 * The caller owns it. */
json_t *config_escaped(const struct request *request);

/* Returns CONFIG as it was taken: variables are replaced, and members that were left out have the default
 * that depends on nothing else. The caller owns it. */
json_t *config_filled(const struct request *request);

/* Completes the JSON Schema of CONFIG: adds the members for options to `frame`, the rest of it. */
void config_complete_schema(json_t *frame);
