/* SPDX-License-Identifier: GPL-2.0-only */
/* Records as trees of names and values. They are jansson's trees, which have text, integers, reals and lists.
 * How a record looks as a line or on a screen is decided by the output formats. */
#pragma once

#include <stddef.h>
#include <time.h>
#include <jansson.h>
#include <linux/types.h>

#include "base/refusal.h"

/* These functions return a new reference. The record that it is put into takes it over. */

/* Text of any bytes: bytes that are not UTF-8 become U+FFFD. At most `most` bytes of the text are used. */
json_t *value_text(const char *text, size_t most);
/* An address or a raw encoding as text, "0x1c0", because many JSON readers keep only 53 bits of a number. */
json_t *value_hex(__u64 number);
/* A time of CLOCK_REALTIME as text: "2026-01-31T23:59:59.123456789Z". */
json_t *value_time(const struct timespec *time);
/* Writes the same text, of TIME_TEXT - 1 characters, to buffer. Returns buffer. */
#define TIME_TEXT    31
#define TIME_TEXT_NS 20 /* where its nine digits of nanoseconds are */
char *time_text(const struct timespec *time, char *buffer);
/* The list of the numbers of the bits that are set, from the lowest. */
json_t *value_bits(__u64 bits);
/* A real number; NULL if it is not finite, so that the member is left out. */
json_t *value_real(double number);

/* Adds a member; none if text is NULL. */
void put_text(json_t *record, const char *name, const char *text);

/* The refusal as an error record. Returns a new reference. */
json_t *record_error(const struct refusal *refusal);
