/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Resource attributes for all records that the user gives: CONFIG's `resource`, and OpenTelemetry's variables
 * (Resource SDK, "Specifying resource information via an environment variable", and General SDK
 * Configuration).
 */
#pragma once

#include <jansson.h>

/*
 * The attributes of OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME and `configured` (NULL: none); later ones
 * override earlier ones. An invalid variable is reported on stderr and ignored as a whole. Returns a new
 * reference.
 */
json_t *resource_attributes(const json_t *configured);
