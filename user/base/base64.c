// SPDX-License-Identifier: GPL-2.0-only
#include "base/base64.h"

#include <string.h>

#include "base/memory.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_text(const void *bytes, size_t size)
{
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

unsigned char *base64_bytes(const char *text, size_t *size)
{
	size_t length = strspn(text, digits);
	unsigned char *bytes = xmalloc(length + 1);
	unsigned int bits = 0;

	*size = 0;
	for (size_t i = 0; i < length; i++) {
		bits = bits << 6 | (unsigned int)(strchr(digits, text[i]) - digits);
		if (i % 4)
			bytes[(*size)++] = bits >> (6 - 2 * (i % 4));
	}
	return bytes;
}
