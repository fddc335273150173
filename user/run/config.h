/* SPDX-License-Identifier: GPL-2.0-only */
/* CONFIG: a session as one JSON file. The names and values of its activities are those of the options. */
#ifndef NHMTAP_CONFIG_H
#define NHMTAP_CONFIG_H

#include "refusal.h"
#include "run/run.h"

#define CONFIG_MOST (1 << 20) /* bytes */

/*
 * Reads and judges CONFIG; command: COMMAND …, which is the target of activities that name none, NULL if
 * there is none. What is wrong is told with its JSON pointer (RFC 6901). Returns 0, or -1 with the
 * refusal (status 1). The caller calls request_release() in any case.
 */
int config_read(struct request *request, const char *path, char **command, struct refusal *refusal);

/* The same for a running session, whose request is `before`. Refuses changes of anything but activities and
 * outputs. */
int config_read_again(struct request *request, const struct request *before, struct refusal *refusal);

/* The JSON Schema of CONFIG, of which `frame` is the part that no option is in. */
void config_complete_schema(json_t *frame);

#endif
