// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts any number of cgroups with the counters of whole CPUs: when a CPU switches from one cgroup to
 * another (PERF_COUNT_SW_CGROUP_SWITCHES), what its counters have counted since the last time is added to the
 * sums of the cgroup that is switched out, which is still the current one at that moment.
 *
 * The program is attached to that event on each CPU. Between switches, user space runs it to add what has
 * been counted so far (BPF_PROG_TEST_RUN with BPF_F_TEST_RUN_ON_CPU). The sums of a CPU are written only by
 * programs on this CPU. These never nest: no switch happens while interrupts or preemption are disabled.
 *
 * A task that moves itself changes the current cgroup without a switch. Where a cgroup gets its first task,
 * or loses its last one, the program is run by the tracepoint cgroup_notify_populated: css_set_move_task(),
 * kernel/cgroup/cgroup.c, updates these before it moves the task, with interrupts disabled. Where others stay
 * in both cgroups, the first notice comes after the move, with interrupts disabled as well: the tracepoint
 * cgroup_attach_task. What has been counted is then added to the cgroup that was current at the program's
 * last run. If there was a switch since, that is not known, and the move is told as a switch that was missed.
 *
 * The kernel skips the program of an event while its CPU is inside another BPF program, or inside a bpf(2)
 * call that changes a map (bpf_prog_active), which may be preempted. The event still counts the switch, so
 * the next run sees from its count that switches were missed, and adds what was counted since the last time
 * to a slot of its own (CGROUP_MISSED). A program on the tracepoint sched_switch would not be skipped, but it
 * would run at every switch between threads, would need the kernel's BTF to see which task comes next, and
 * would run before the kernel updates the counts of the cgroup that is switched out.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "counters.bpf.h"
#include "shared.h"

const volatile __u32 nr_events = 0;
const volatile __u32 nr_slots = 1; /* slots of a CPU, without CGROUP_LAST_SLOTS; a power of two */

/* Entries of a CPU in the map of counters: its events, then the event that counts cgroup switches. */
#define COUNTERS (nr_events + 1)

/* User space sizes these maps: by the number of CPUs, and the counters also by the number of events. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cgroup_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct cgroup_sums));
} sums SEC(".maps");

#define PROBES 16

static __always_inline struct cgroup_sums *last_sums(__u32 cpu, enum cgroup_last which)
{
	__u32 index = cpu * (nr_slots + CGROUP_LAST_SLOTS) + nr_slots + which;

	return bpf_map_lookup_elem(&sums, &index);
}

/* Returns the sums of a cgroup. Takes a slot if it has none yet, and the slot CGROUP_OTHERS if none
 * is free. */
static __always_inline struct cgroup_sums *find_sums(__u32 cpu, __u64 id)
{
	__u32 first = cpu * (nr_slots + CGROUP_LAST_SLOTS), hash = id * 0x9e3779b97f4a7c15ULL >> 32;
	__u32 none = first + nr_slots + CGROUP_OTHERS, free = none;
	struct cgroup_sums *at;

	for (int i = 0; i < PROBES; i++) {
		__u32 index = first + ((hash + i) & (nr_slots - 1));

		at = bpf_map_lookup_elem(&sums, &index);
		if (!at || at->cgroup == id)
			return at;
		if (free == none && (at->cgroup == CGROUP_NONE || at->cgroup == CGROUP_RELEASED))
			free = index;
		if (at->cgroup == CGROUP_NONE)
			break;
	}
	at = bpf_map_lookup_elem(&sums, &free);
	if (at && free != none)
		at->cgroup = id;
	return at;
}

/* Returns how many cgroup switches of this CPU the program has missed since its last run. `seen` is 1 if the
 * program runs at a switch now, else 0. */
static __always_inline __u64 missed(struct cgroup_cpu *cpu, __u32 this_cpu, __u64 seen)
{
	struct bpf_perf_event_value now;
	__u64 since;

	if (bpf_perf_event_read_value(&counters, this_cpu * COUNTERS + nr_events, &now, sizeof(now)))
		return 0;
	since = now.counter - cpu->switches;
	cpu->switches = now.counter;
	return since - seen;
}

/* Adds what has been counted since the last run to a cgroup, or to CGROUP_MISSED if a switch was missed or
 * `id` is CGROUP_NONE. */
static __always_inline void add_up(struct cgroup_cpu *cpu, __u32 this_cpu, __u64 id, __u64 seen)
{
	__u64 without = missed(cpu, this_cpu, seen) + (id == CGROUP_NONE);
	struct cgroup_sums *of = without ? last_sums(this_cpu, CGROUP_MISSED) : find_sums(this_cpu, id);

	cpu->seen += seen;
	cpu->missed += without;
	cpu->current = seen ? CGROUP_NONE : bpf_get_current_cgroup_id();
	if (!of)
		return;
	for (__u32 i = 0; i < CGROUP_EVENTS_MOST; i++) {
		struct bpf_perf_event_value now;

		if (i >= nr_events)
			break;
		if (bpf_perf_event_read_value(&counters, this_cpu * COUNTERS + i, &now, sizeof(now)))
			continue;
		of->counts[i].value += now.counter - cpu->last[i].value;
		of->counts[i].enabled_ns += now.enabled - cpu->last[i].enabled_ns;
		of->counts[i].running_ns += now.running - cpu->last[i].running_ns;
		cpu->last[i].value = now.counter;
		cpu->last[i].enabled_ns = now.enabled;
		cpu->last[i].running_ns = now.running;
	}
}

SEC("perf_event")
int on_cgroup_switch(void *ctx __attribute__((unused)))
{
	__u32 this_cpu = bpf_get_smp_processor_id();
	struct cgroup_cpu *cpu = bpf_map_lookup_elem(&cpus, &this_cpu);

	if (cpu)
		add_up(cpu, this_cpu, bpf_get_current_cgroup_id(), 1);
	return 0;
}

SEC("raw_tracepoint")
int add_until_now(void *ctx __attribute__((unused)))
{
	__u32 this_cpu = bpf_get_smp_processor_id();
	struct cgroup_cpu *cpu = bpf_map_lookup_elem(&cpus, &this_cpu);

	if (cpu)
		add_up(cpu, this_cpu, bpf_get_current_cgroup_id(), 0);
	return 0;
}

/* TP_PROTO(struct cgroup *dst_cgrp, const char *path, struct task_struct *task, bool threadgroup) */
SEC("raw_tracepoint")
int on_move(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 this_cpu = bpf_get_smp_processor_id();
	struct cgroup_cpu *cpu = bpf_map_lookup_elem(&cpus, &this_cpu);

	if (!cpu || (cpu->current ? cpu->current == bpf_get_current_cgroup_id()
				  : ctx->args[2] != bpf_get_current_task()))
		return 0;
	add_up(cpu, this_cpu, cpu->current, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
