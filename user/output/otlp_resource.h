/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NHMTAP_OTLP_RESOURCE_H
#define NHMTAP_OTLP_RESOURCE_H

#include "output/output.h"

/* The attributes of a stream's resource, {name: value}: those of the start record, and the ones that
 * OpenTelemetry requires of every resource where the user has not set them. The caller owns the object. */
json_t *otlp_resource(const struct stream *stream);

#endif
