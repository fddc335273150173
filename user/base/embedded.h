/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that the build puts into the program: the BPF objects and the JSON Schemas. */
#pragma once

#include <stddef.h>

struct embedded {
	const char *name; /* the file's, "profile.bpf.o", "count.schema.json"; NULL: no such file */
	const char *data; /* constant; a zero byte follows the last */
	size_t size;
};

/* The i-th file. */
struct embedded embedded_at(size_t i);

/* The file of this name. */
struct embedded embedded_find(const char *name);
