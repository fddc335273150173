/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stddef.h>

/* Writes bytes as lower-case hex, two digits each, and a zero byte: 2 * size + 1 bytes in all. */
static inline void hex_text(char *text, const void *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		*text++ = digits[((const unsigned char *)bytes)[i] >> 4];
		*text++ = digits[((const unsigned char *)bytes)[i] & 15];
	}
	*text = '\0';
}
