/* SPDX-License-Identifier: GPL-2.0-only */
/* Making messages of protobuf-c, which free_unpacked() then frees as a whole. */
#pragma once

#include "base/memory.h"

/* A new message of this type; `init` is its ..._INIT. */
#define PROTOBUF_NEW(type, init)                                                                             \
	({                                                                                                   \
		type *message = xmalloc(sizeof(*message));                                                   \
                                                                                                             \
		*message = (type)init;                                                                       \
		message;                                                                                     \
	})

/* Appends to a repeated field. */
#define PROTOBUF_APPEND(list, number, item) (*xappend(list, number) = (item))
