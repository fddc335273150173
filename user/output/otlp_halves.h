/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests of OTLP's metrics that are too large for a server. */
#ifndef NHMTAP_OTLP_HALVES_H
#define NHMTAP_OTLP_HALVES_H

#include <stdbool.h>
#include <stddef.h>

/* Makes two requests of one in OTLP's JSON encoding, each with about half of its data points. The caller
 * frees both texts. Returns false if there is only one data point, or if it is no such request. */
bool otlp_halve(const char *bytes, size_t size, char *halves[2]);

#endif
