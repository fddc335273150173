/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of JSON whose path the user names. */
#ifndef NHMTAP_JSON_FILE_H
#define NHMTAP_JSON_FILE_H

#include <jansson.h>
#include <linux/types.h>

/*
 * Reads a regular file of at most so many bytes, with jansson's flags. The caller owns what it returns. NULL
 * with guarded_open_path()'s errno, or with errno 0 and the error if it is no JSON.
 */
json_t *json_file_read(const char *path, __u64 most, size_t flags, json_error_t *error);

#endif
