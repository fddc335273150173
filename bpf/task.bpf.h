/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The numbers of the task that runs, as nhmtap's own pid namespace has them: those of its records, of
 * /proc and of the kernel's notes. bpf_get_current_pid_tgid() has those of the initial namespace.
 *
 * User space sets the constants before loading. In the initial namespace all are 0, and nothing is done
 * that was not done without them. The offsets come from namespace.bpf.c: relocated accesses here would
 * make every program need the kernel's BTF.
 */
#ifndef NHMTAP_TASK_BPF_H
#define NHMTAP_TASK_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* nhmtap's pid namespace as stat(2) of /proc/self/ns/pid has it; inode 0: the initial one. */
const volatile __u64 namespace_device, namespace_inode;
/* struct own_namespace; address 0: not known, and tasks of deeper namespaces then have no number. */
const volatile __u64 namespace_address;
const volatile __u32 namespace_level, leader_offset, pid_offset, level_offset, number_offset, address_offset;

static __always_inline void read_kernel(void *to, __u32 size, __u64 address)
{
	bpf_probe_read_kernel(to, size, (const void *)address);
}

/* 0: the task is in no namespace of nhmtap's. */
static __always_inline __u32 number_of(__u64 task)
{
	__u64 pid = 0, address = 0;
	__u32 level = 0, number = 0;

	read_kernel(&pid, sizeof(pid), task + pid_offset);
	read_kernel(&level, sizeof(level), pid + level_offset);
	if (!pid || level < namespace_level)
		return 0;
	read_kernel(&address, sizeof(address), pid + address_offset);
	if (address != namespace_address)
		return 0;
	read_kernel(&number, sizeof(number), pid + number_offset);
	return number;
}

static __noinline __u64 ids_in_namespace(void)
{
	struct bpf_pidns_info ids = {};
	__u64 task, leader = 0;

	/* Fails for a task whose own namespace is another one, a deeper one too. */
	if (!bpf_get_ns_current_pid_tgid(namespace_device, namespace_inode, &ids, sizeof(ids)))
		return (__u64)ids.tgid << 32 | ids.pid;
	if (!namespace_address)
		return 0;
	task = bpf_get_current_task();
	read_kernel(&leader, sizeof(leader), task + leader_offset);
	return (__u64)number_of(leader) << 32 | number_of(task);
}

/* As bpf_get_current_pid_tgid(): the process in the upper half, the thread in the lower one. Both are 0
 * for a task that is in no namespace of nhmtap's. */
static __always_inline __u64 current_ids(void)
{
	return namespace_inode ? ids_in_namespace() : bpf_get_current_pid_tgid();
}

#endif
