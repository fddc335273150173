/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the user says of the source of all records: CONFIG's `resource`, and OpenTelemetry's variables
 * (Resource SDK, "Specifying resource information via an environment variable", and General SDK
 * Configuration).
 */
#ifndef NHMTAP_RUN_RESOURCE_H
#define NHMTAP_RUN_RESOURCE_H

#include <stdbool.h>

#include <jansson.h>

/* Whether nhmtap finds an attribute out itself, so that nobody else may say it. */
bool resource_is_own(const char *name);

/*
 * The attributes of OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME and of `configured` (NULL: none), of which
 * the later win. A variable that can't be read is told on stderr and left out as a whole. Returns a new
 * reference.
 */
json_t *resource_attributes(const json_t *configured);

#endif
