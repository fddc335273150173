/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <protobuf-c/protobuf-c.h>

/* A new id for a profile of OpenTelemetry: 16 bytes, which the profile's holder frees. */
ProtobufCBinaryData otlp_profile_id(void);
