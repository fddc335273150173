/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads JSON files. */
#pragma once

#include <jansson.h>

/* Reads what a function of base/copied.h or base/guarded.h has opened, or not: -1 with errno. Closes it.
 * `flags`: jansson's. The caller owns the result. Returns NULL on failure, with that errno, or with errno 0
 * and `error` if the file is not JSON. */
json_t *json_fd_read(int fd, size_t flags, json_error_t *error);
