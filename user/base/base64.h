/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NHMTAP_BASE64_H
#define NHMTAP_BASE64_H

#include <stddef.h>

/* The bytes as base64 (RFC 4648, section 4) with padding. The caller frees it. */
char *base64_text(const void *bytes, size_t size);

#endif
