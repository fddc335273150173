/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

#include <stddef.h>

/* The bytes as base64 (RFC 4648, section 4) with padding. The caller frees it. */
char *base64_text(const void *bytes, size_t size);

/* The bytes that base64_text() made a text of; a text that it does not make ends at its first wrong letter.
 * The caller frees them. */
unsigned char *base64_bytes(const char *text, size_t *size);
