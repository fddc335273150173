/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files of records that are compressed with zstd, by their name: FILE.zst. They are a series of frames (RFC
 * 8878), each of which has whole records, so a file that was cut is readable up to its last whole frame.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/refusal.h"

/* Whether a file of this name is compressed; false for NULL. */
bool zstd_is_name(const char *path);

/* Loads libzstd, which the other functions need. Returns 0, or -1 with the refusal. */
int zstd_need(const char *option, const char *path, struct refusal *refusal);

/* Compresses the bytes to a frame. Returns it; the caller frees it. */
char *zstd_frame(const char *bytes, size_t size, size_t *frame_size);

/* Reads a compressed file and writes its text to a pipe. Of a file that was cut, the text ends with the last
 * whole line. Returns 0, also if nobody reads the pipe any more, or an errno; EBADMSG: it is damaged. */
int zstd_pass(int from, int to);
