/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads JSON files whose path the user names. */
#ifndef NHMTAP_JSON_FILE_H
#define NHMTAP_JSON_FILE_H

#include <jansson.h>
#include <linux/types.h>

/* Reads a regular file of at most `most` bytes. `flags`: jansson's. The caller owns the result. Returns NULL
 * on failure, with errno of guarded_open_path(), or with errno 0 and `error` if the file is not JSON. */
json_t *json_file_read(const char *path, __u64 most, size_t flags, json_error_t *error);

/* The same for a descriptor that was opened by such a function, or is -1 with errno. Closes it. */
json_t *json_fd_read(int fd, size_t flags, json_error_t *error);

#endif
