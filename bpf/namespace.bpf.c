// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the pid namespace of the task that runs it, and the offsets in this kernel of the members that
 * task.bpf.h reads. It is attached to nothing: user space runs it once (BPF_PROG_TEST_RUN), and passes the
 * result to the other programs as constants.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "shared.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct own_namespace);
} own_namespaces SEC(".maps");

SEC("raw_tracepoint")
int find_namespace(struct bpf_raw_tracepoint_args *ctx __attribute__((unused)))
{
	/* The types that task.bpf.h reads: on a kernel that lacks one, this program is what fails. */
	const struct task_struct *task = bpf_get_current_task_btf();
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 zero = 0, level = BPF_CORE_READ(pid, level);
	struct own_namespace *own = bpf_map_lookup_elem(&own_namespaces, &zero);
	struct upid upid = {};

	if (!own || bpf_core_field_offset(struct upid, nr) != 0 ||
	    bpf_core_field_offset(struct upid, ns) != 8)
		return 0;
	own->level = level;
	own->leader_offset = bpf_core_field_offset(struct task_struct, group_leader);
	own->pid_offset = bpf_core_field_offset(struct task_struct, thread_pid);
	own->level_offset = bpf_core_field_offset(struct pid, level);
	own->upid_offset =
		bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid);
	bpf_probe_read_kernel(&upid, sizeof(upid), (const char *)pid + own->upid_offset);
	own->address = (__u64)upid.ns;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
