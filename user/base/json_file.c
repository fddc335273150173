// SPDX-License-Identifier: GPL-2.0-only
#include "base/json_file.h"

#include <errno.h>
#include <unistd.h>

static size_t read_block(void *block, size_t size, void *fd)
{
	return read(*(int *)fd, block, size);
}

json_t *json_fd_read(int fd, size_t flags, json_error_t *error)
{
	json_t *document;

	if (fd < 0)
		return NULL;
	/* Not json_loadfd(): it calls read(2) for each byte. */
	document = json_load_callback(read_block, &fd, flags, error);
	close(fd);
	errno = 0;
	return document;
}
