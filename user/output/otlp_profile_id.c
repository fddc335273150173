// SPDX-License-Identifier: GPL-2.0-only
#include "output/otlp_profile_id.h"

#include "base/memory.h"
#include "base/unique.h"

ProtobufCBinaryData otlp_profile_id(void)
{
	ProtobufCBinaryData id = {UNIQUE_BYTES, xcalloc(1, UNIQUE_BYTES)};

	unique_id(id.data);
	return id;
}
