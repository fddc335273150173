// SPDX-License-Identifier: GPL-2.0-only
/* Documents of lines, halved between two of them. */
#include <string.h>

#include "base/memory.h"
#include "output/halves.h"

static struct half copy_of(const char *bytes, size_t size)
{
	struct half copy = {xmalloc(size), size};

	memcpy(copy.bytes, bytes, size);
	return copy;
}

bool lines_halve(const char *bytes, size_t size, struct half halves[2])
{
	const char *middle = memchr(bytes + size / 2, '\n', size - size / 2);

	/* A long line at the end: what comes before it. */
	if (!middle || middle + 1 == bytes + size)
		middle = memrchr(bytes, '\n', size / 2);
	if (!middle)
		return false;
	middle++;
	halves[0] = copy_of(bytes, middle - bytes);
	halves[1] = copy_of(middle, bytes + size - middle);
	return true;
}
