// SPDX-License-Identifier: GPL-2.0-only
/* A record a line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/output.h"

int output_json(struct stream *stream, const json_t *record)
{
	char *line = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(15));
	size_t length;
	int err;

	if (!line)
		return -ENOMEM;
	length = strlen(line);
	line[length] = '\n'; /* over the zero byte: the line is put by its length */
	err = sink_put(&stream->sink, line, length + 1);
	free(line);
	return err;
}
