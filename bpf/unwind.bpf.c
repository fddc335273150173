// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps the lists of what processes have mapped right at the moment when they change: a forked child gets its
 * parent's list, and after an exec a process has none until user space has made one.
 */
#include "vmlinux.h"
#include "task.bpf.h"
#include "unwind_maps.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_executions);
} unwind_executions SEC(".maps");

SEC("raw_tracepoint/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *parent = (const void *)ctx->args[0], *child = (const void *)ctx->args[1];
	__u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid);
	struct unwind_process *process, copy;

	if (from == to) /* a thread */
		return 0;
	if (namespace_inode) {
		from = current_ids() >> 32;
		to = namespace_address ? number_of_any((__u64)child) : 0;
	}
	if (!to)
		return 0;
	process = bpf_map_lookup_elem(&unwind_processes, &from);
	if (process) {
		copy = *process;
		bpf_map_update_elem(&unwind_processes, &to, &copy, BPF_ANY);
	} else {
		bpf_map_delete_elem(&unwind_processes, &to);
	}
	return 0;
}

SEC("raw_tracepoint/sched_process_exec")
int on_exec(void *ctx __attribute__((unused)))
{
	__u32 zero = 0, pid = current_ids() >> 32;
	struct unwind_executions *executions = bpf_map_lookup_elem(&unwind_executions, &zero);

	if (!bpf_map_delete_elem(&unwind_processes, &pid) && executions)
		__sync_fetch_and_add(&executions->nr[pid & (UNWIND_EXECUTIONS - 1)], 1);
	return 0;
}

#define NODE(node, type)                                                                                     \
	do {                                                                                                 \
		(node).pivots = bpf_core_field_offset(type, pivot);                                          \
		(node).nr_pivots = bpf_core_field_size(type, pivot) / 8;                                     \
		(node).slots = bpf_core_field_offset(type, slot);                                            \
	} while (0)

/* Stores the offsets that struct unwind_kernel needs. User space runs it once: BPF_PROG_TEST_RUN. */
SEC("raw_tracepoint")
int find_layout(void *ctx __attribute__((unused)))
{
	__u32 zero = 0;
	struct unwind_kernel *kernel = bpf_map_lookup_elem(&unwind_kernels, &zero);

	/* Before 6.1, mappings were kept in an rb tree, which is not supported. */
	if (!kernel || !bpf_core_field_exists(struct mm_struct, mm_mt))
		return 0;
	kernel->root = bpf_core_field_offset(struct mm_struct, mm_mt.ma_root);
	kernel->vdso = bpf_core_field_offset(struct mm_struct, context.vdso);
	kernel->start = bpf_core_field_offset(struct vm_area_struct, vm_start);
	kernel->end = bpf_core_field_offset(struct vm_area_struct, vm_end);
	kernel->page = bpf_core_field_offset(struct vm_area_struct, vm_pgoff);
	kernel->owner = bpf_core_field_offset(struct vm_area_struct, vm_mm);
	kernel->file = bpf_core_field_offset(struct vm_area_struct, vm_file);
	kernel->inode = bpf_core_field_offset(struct file, f_inode);
	kernel->number = bpf_core_field_offset(struct inode, i_ino);
	kernel->super = bpf_core_field_offset(struct inode, i_sb);
	kernel->size = bpf_core_field_offset(struct inode, i_size);
	kernel->device = bpf_core_field_offset(struct super_block, s_dev);
	kernel->leaf = bpf_core_enum_value(enum maple_type, maple_leaf_64);
	kernel->gaps = bpf_core_enum_value(enum maple_type, maple_arange_64);
	NODE(kernel->nodes[0], struct maple_range_64);
	NODE(kernel->nodes[1], struct maple_arange_64);
	kernel->mm = bpf_core_field_offset(struct task_struct, mm);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
