// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/own_pids.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "aggregation/constants.h"
#include "aggregation/libbpf_words.h"
#include "aggregation/object.h"
#include "base/array.h"
#include "host/processes.h"

static int run_in(struct bpf_object *object, struct own_namespace *own)
{
	const struct bpf_program *program = bpf_object__find_program_by_name(object, "find_namespace");
	size_t size = sysconf(_SC_PAGESIZE);
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err = bpf_prog_test_run_opts(bpf_program__fd(program), &run);
	const struct own_namespace *found;

	if (err)
		return err;
	found = mmap(NULL, size, PROT_READ, MAP_SHARED,
		     bpf_object__find_map_fd_by_name(object, "own_namespaces"), 0);
	if (found == MAP_FAILED)
		return -errno;
	*own = *found;
	munmap((void *)found, size);
	return own->address ? 0 : -ENODATA;
}

int own_pids_find(struct own_namespace *own)
{
	struct libbpf_words unsaid;
	struct bpf_object *object;
	int err;

	*own = (struct own_namespace){0};
	libbpf_words_begin(&unsaid);
	object = object_open("namespace");
	err = object ? bpf_object__load(object) : -errno;
	libbpf_words_end(&unsaid);
	if (!err)
		err = run_in(object, own);
	bpf_object__close(object);
	return err;
}

__u64 kernel_device(__u64 device)
{
	return (__u64)major(device) << 20 | minor(device);
}

static void set_constants(struct bpf_object *object, const struct pid_namespace *namespace,
			  const struct own_namespace *own)
{
	const struct {
		const char *name;
		__u64 value;
	} constants[] = {
		{"namespace_device", kernel_device(namespace->device)},
		/* If the inode is not known, use one that no task has: each task is then looked up by the
		 * namespace's address. */
		{"namespace_inode", namespace->inode ? namespace->inode : ~0ULL},
		{"namespace_address", own->address},
		{"namespace_level", own->level},
		{"leader_offset", own->leader_offset},
		{"pid_offset", own->pid_offset},
		{"level_offset", own->level_offset},
		{"upid_offset", own->upid_offset},
	};

	for (size_t i = 0; i < ARRAY_SIZE(constants); i++)
		constants_set(object, constants[i].name, constants[i].value);
}

void own_pids_set(struct bpf_object *object)
{
	/* Looked up once: reading the kernel's BTF takes longer than loading a program. */
	static struct own_namespace own;
	static bool tried;
	struct pid_namespace namespace = pid_namespace();

	if (namespace.initial)
		return;
	if (!tried)
		own_pids_find(&own);
	tried = true;
	if (own.level || !own.address)
		set_constants(object, &namespace, &own);
}
