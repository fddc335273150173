// SPDX-License-Identifier: GPL-2.0-only
#include "output/otlp_profile_id.h"

#include <string.h>
#include <sys/random.h>

#include "base/memory.h"

#define ID_BYTES 16

ProtobufCBinaryData otlp_profile_id(void)
{
	ProtobufCBinaryData id = {ID_BYTES, xcalloc(1, ID_BYTES)};

	/* GRND_INSECURE: the id must be unique, but not secret, and must not block early at boot. */
	if (getrandom(id.data, ID_BYTES, GRND_INSECURE) != ID_BYTES)
		memset(id.data, 1, ID_BYTES);
	return id;
}
