/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "record/compact.h"

/* Appends a message in the JSON encoding of protobuf (protobuf.dev, "ProtoJSON Format"), with the exception
 * that OTLP makes: trace_id and span_id are hexadecimal. For messages of the types of fields that the .proto
 * files here use. */
void protobuf_json(struct compact *out, const ProtobufCMessage *message);

/* Makes the message of this type that protobuf_json() has written. What it would not write is left out. The
 * caller frees it as an unpacked one. */
ProtobufCMessage *protobuf_of_json(const ProtobufCMessageDescriptor *descriptor, const json_t *object);
