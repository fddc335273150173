/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ids of the current task in nhmtap's own pid namespace, as in its records, in /proc and in the kernel's
 * notes (perf's side-band records). bpf_get_current_pid_tgid() returns those of the initial namespace.
 *
 * User space sets the constants before loading. In the initial namespace all are 0, and the helper's ids are
 * used as they are. The offsets come from namespace.bpf.c: relocated accesses here would make every program
 * need the kernel's BTF.
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* nhmtap's pid namespace as stat(2) of /proc/self/ns/pid has it; inode 0: the initial one. */
const volatile __u64 namespace_device, namespace_inode;
/* From struct own_namespace. If the address is 0 (not known), tasks of deeper namespaces have no number. */
const volatile __u64 namespace_address;
const volatile __u32 namespace_level, leader_offset, pid_offset, level_offset, upid_offset;

/* A task's number in the pid namespace at nhmtap's level: struct upid, include/linux/pid.h. */
struct number {
	__u32 number;
	__u32 padding;
	__u64 address; /* the namespace's */
};

static __always_inline __u32 number_in(const char *pid, __u32 level)
{
	struct number number;

	if (level < namespace_level || bpf_probe_read_kernel(&number, sizeof(number), pid + upid_offset))
		return 0;
	return number.address == namespace_address ? number.number : 0;
}

/* Returns the number of a task whose pointer the verifier trusts; 0 if the task is not in nhmtap's namespace.
 * Loads through a NULL pointer give 0. */
static __always_inline __u32 number_of(const char *task)
{
	const char *pid = *(const char *const *)(task + pid_offset);

	return number_in(pid, *(const __u32 *)(pid + level_offset));
}

/* The same for a task of which only the address is known. */
static __always_inline __u32 number_of_any(__u64 task)
{
	const char *pid = NULL;
	__u32 level = 0;

	bpf_probe_read_kernel(&pid, sizeof(pid), (const char *)task + pid_offset);
	bpf_probe_read_kernel(&level, sizeof(level), pid + level_offset);
	return number_in(pid, level);
}

/* Uses loads of the kernel's memory that the verifier allows: one call of a helper would take as long as all
 * of them together. */
static __noinline __u64 ids_in_namespace(void)
{
	struct bpf_pidns_info ids = {};
	const char *task, *leader;
	__u32 process;

	if (namespace_address) {
		task = (const char *)bpf_get_current_task_btf();
		leader = *(const char *const *)(task + leader_offset);
		process = number_of(leader);
		return (__u64)process << 32 | (task == leader ? process : number_of(task));
	}
	/* Fails for a task whose own namespace is not this one, even if it is a descendant. */
	if (bpf_get_ns_current_pid_tgid(namespace_device, namespace_inode, &ids, sizeof(ids)))
		return 0;
	return (__u64)ids.tgid << 32 | ids.pid;
}

/* Like bpf_get_current_pid_tgid(): the process in the upper half, the thread in the lower half. Both are 0
 * for a task that is not in nhmtap's namespace. */
static __always_inline __u64 current_ids(void)
{
	return namespace_inode ? ids_in_namespace() : bpf_get_current_pid_tgid();
}
