// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/object.h"

#include <errno.h>
#include <stdio.h>

#include <bpf/libbpf.h>

#include "aggregation/kernel_types.h"
#include "aggregation/libbpf_words.h"
#include "aggregation/wanted_types.h"
#include "base/embedded.h"

struct bpf_object *object_open(const char *name)
{
	struct bpf_object_open_opts options = {.sz = sizeof(options), .object_name = name};
	struct embedded file;
	char file_name[64];

	snprintf(file_name, sizeof(file_name), "%s.bpf.o", name);
	file = embedded_find(file_name);
	if (!file.name) {
		errno = ENOENT;
		return NULL;
	}
	if (object_reads_kernel(&file))
		options.btf_custom_path = kernel_types_path();
	return bpf_object__open_mem(file.data, file.size, &options);
}

int object_load_quietly(struct bpf_object *object)
{
	struct libbpf_words unsaid;
	int err;

	libbpf_words_begin(&unsaid);
	err = bpf_object__load(object);
	libbpf_words_end(&unsaid);
	return err;
}
