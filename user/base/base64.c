// SPDX-License-Identifier: GPL-2.0-only
#include "base/base64.h"

#include "base/memory.h"

char *base64_text(const void *bytes, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *from = bytes;
	char *text = xmalloc((size + 2) / 3 * 4 + 1), *to = text;

	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		unsigned int three =
			from[i] << 16 | (left > 1 ? from[i + 1] << 8 : 0) | (left > 2 ? from[i + 2] : 0);

		*to++ = digits[three >> 18];
		*to++ = digits[three >> 12 & 63];
		*to++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[three & 63] : '=';
	}
	*to = '\0';
	return text;
}
