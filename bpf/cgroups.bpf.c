// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts for each cgroup, whatever their number, with the counters of whole CPUs: where a CPU goes over from
 * one cgroup to another (PERF_COUNT_SW_CGROUP_SWITCHES), what its counters have counted since the last time
 * is added to the sums of the cgroup that leaves, which is still current there.
 *
 * The program is attached to that event, on each CPU. User space has it run in between, to add what has been
 * counted since the last switch (BPF_PROG_TEST_RUN with BPF_F_TEST_RUN_ON_CPU). A CPU's sums are written by
 * programs on this CPU alone, and those never run inside each other: a switch does not happen while
 * interrupts are off, or preemption.
 *
 * The kernel does not run the program of an event while its CPU is inside another one, or inside a call of
 * bpf(2) that works on a map (bpf_prog_active), which may be preempted. The event counts the switch all the
 * same, so the program sees that it was passed over, and puts what was counted since into a slot of its own.
 * A program on the tracepoint sched_switch would not be passed over, but it is run at every switch between
 * threads, needs the kernel's BTF to see who comes, and comes before the kernel counts the switch for the one
 * that leaves.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "counters.bpf.h"
#include "shared.h"

const volatile __u32 nr_events = 0;
const volatile __u32 nr_slots = 1; /* of a CPU, before its last ones; a power of two */

/* What user space puts among the counters of a CPU, behind the events: the event of switches. */
#define COUNTERS (nr_events + 1)

/* User space makes all of these as long as there are CPUs, and the values as long as there are events. */
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

/* The slot of the cgroup that is current. */
static __always_inline struct cgroup_sums *find_sums(__u32 cpu)
{
	__u64 id = bpf_get_current_cgroup_id();
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

/* How many switches of this CPU the program has missed since the last time. `seen`: it runs at a switch now.
 */
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

/* What has been counted since the last time is the current cgroup's, if no switch was missed. */
static __always_inline void add_up(struct cgroup_cpu *cpu, __u32 this_cpu, __u64 seen)
{
	__u64 without = missed(cpu, this_cpu, seen);
	struct cgroup_sums *of = without ? last_sums(this_cpu, CGROUP_MISSED) : find_sums(this_cpu);

	cpu->seen += seen;
	cpu->missed += without;
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
		add_up(cpu, this_cpu, 1);
	return 0;
}

SEC("raw_tracepoint")
int add_until_now(void *ctx __attribute__((unused)))
{
	__u32 this_cpu = bpf_get_smp_processor_id();
	struct cgroup_cpu *cpu = bpf_map_lookup_elem(&cpus, &this_cpu);

	if (cpu)
		add_up(cpu, this_cpu, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
