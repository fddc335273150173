/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records as trees of names and values. jansson's tree is the neutral form: it knows text, whole numbers,
 * reals and lists; the outputs decide how a record looks on a line or a screen.
 */
#ifndef NHMTAP_RECORD_H
#define NHMTAP_RECORD_H

#include <stddef.h>
#include <time.h>
#include <jansson.h>
#include <linux/types.h>

#include "refusal.h"

/* All of these return a new reference, which the record that it is put into steals. */

/* Text of any bytes: what is not UTF-8 becomes U+FFFD, and at most `most` bytes are taken. */
json_t *value_text(const char *text, size_t most);
/* An address or a raw encoding: "0x1c0". JSON's readers keep only 53 bits of a number. */
json_t *value_hex(__u64 number);
/* A point in time of CLOCK_REALTIME: "2026-01-31T23:59:59.123456789Z". */
json_t *value_time(const struct timespec *time);
/* The same as text of TIME_TEXT - 1 characters; returns buffer. */
#define TIME_TEXT 31
char *time_text(const struct timespec *time, char *buffer);
/* The numbers of the bits that are set, from the lowest. */
json_t *value_bits(__u64 bits);
/* A real number; NULL (a member that is left out) if it is not finite. */
json_t *value_real(double number);

/* Puts a text where there is one; NULL: the member is left out. */
void put_text(json_t *record, const char *name, const char *text);

/* A refusal as an error record. */
json_t *record_error(const struct refusal *refusal);

#endif
