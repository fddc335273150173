/* SPDX-License-Identifier: GPL-2.0-only */
/* Documents that are too large for a server: each format makes two smaller ones of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A document's bytes, which their holder frees. */
struct half {
	char *bytes;
	size_t size;
};

/* Makes two documents of one, each with about half of its samples, data points or lines, and with nothing
 * that only the other half uses. Returns false, and makes nothing, if the document has only one of them, or
 * is not of the format. */
typedef bool halve_t(const char *bytes, size_t size, struct half halves[2]);

halve_t lines_halve, otlp_halve, otlp_profiles_halve, otlp_profiles_json_halve, pprof_halve;
