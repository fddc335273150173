// SPDX-License-Identifier: GPL-2.0-only
#include "collection/cgroup_switches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "aggregation/constants.h"
#include "aggregation/object.h"
#include "base/array.h"
#include "base/memory.h"
#include "shared.h"

/* Slots of a CPU, without CGROUP_LAST_SLOTS; a power of two. There are more than the least if those of all
 * CPUs fit into so many bytes. */
#define SLOTS_LEAST 1024UL
#define SLOTS_MOST  4096UL
#define SUMS_BYTES  (8UL << 20)

_Static_assert(sizeof(struct counter_sum) == sizeof(struct count), "one is the other");

struct cgroup_switches {
	struct bpf_object *object;
	size_t events;
	int nr_cpus;
	size_t slots, stride; /* of a CPU: without, and with CGROUP_LAST_SLOTS */
	size_t sum_size, mapped_sums, mapped_cpus;
	char *sums; /* mapped */
	struct cgroup_cpu *cpus;
	int moves[2]; /* descriptors of the programs at the moves of tasks; -1: it is not attached */
	struct switch_event {
		int fd, link; /* -1: it is not open */
	} * of_cpu;
};

static int map_fd(const struct cgroup_switches *switches, const char *name)
{
	return bpf_map__fd(bpf_object__find_map_by_name(switches->object, name));
}

static int program_fd(const struct cgroup_switches *switches, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(switches->object, name));
}

static void *map_memory(size_t size, int fd)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static struct cgroup_sums *cgroup_sums_at(const struct cgroup_switches *switches, size_t i)
{
	return (struct cgroup_sums *)(switches->sums + i * switches->sum_size);
}

static int load_programs(struct cgroup_switches *switches)
{
	struct bpf_map *counters = bpf_object__find_map_by_name(switches->object, "counters"),
		       *cpus = bpf_object__find_map_by_name(switches->object, "cpus"),
		       *sums = bpf_object__find_map_by_name(switches->object, "sums");
	size_t nr_sums = switches->nr_cpus * switches->stride;
	int err;

	constants_set(switches->object, "nr_events", switches->events);
	constants_set(switches->object, "nr_slots", switches->slots);
	bpf_map__set_max_entries(counters, switches->nr_cpus * (switches->events + 1));
	bpf_map__set_max_entries(cpus, switches->nr_cpus);
	bpf_map__set_max_entries(sums, nr_sums);
	bpf_map__set_value_size(sums, switches->sum_size);
	err = object_load_quietly(switches->object);
	if (err)
		return err;
	switches->mapped_sums = nr_sums * switches->sum_size;
	switches->mapped_cpus = switches->nr_cpus * sizeof(*switches->cpus);
	switches->sums = map_memory(switches->mapped_sums, map_fd(switches, "sums"));
	switches->cpus = map_memory(switches->mapped_cpus, map_fd(switches, "cpus"));
	if (!switches->sums || !switches->cpus)
		return -errno;
	for (size_t i = 0; i < nr_sums; i++)
		if (i % switches->stride >= switches->slots)
			cgroup_sums_at(switches, i)->cgroup =
				CGROUP_NO_CGROUP + i % switches->stride - switches->slots;
	return 0;
}

static size_t sum_size(size_t events)
{
	return offsetof(struct cgroup_sums, counts) + events * sizeof(struct counter_sum);
}

static size_t slots_of(size_t events, size_t nr_cpus)
{
	size_t slots = SLOTS_MOST;

	while (slots > SLOTS_LEAST && nr_cpus * slots * sum_size(events) > SUMS_BYTES)
		slots /= 2;
	return slots;
}

size_t cgroup_switches_bytes(size_t events, const struct host *host)
{
	size_t nr_cpus = cpus_end(&host->possible), slots = slots_of(events, nr_cpus) + CGROUP_LAST_SLOTS;

	return nr_cpus * (slots * sum_size(events) + sizeof(struct cgroup_cpu));
}

int cgroup_switches_open(struct cgroup_switches **result, size_t events, const struct host *host)
{
	struct cgroup_switches *switches;
	int err;

	if (events > CGROUP_EVENTS_MOST)
		return -E2BIG;
	switches = xcalloc(1, sizeof(*switches));
	switches->events = events;
	switches->sum_size = sum_size(events);
	switches->nr_cpus = cpus_end(&host->possible);
	switches->slots = slots_of(events, switches->nr_cpus);
	switches->stride = switches->slots + CGROUP_LAST_SLOTS;
	switches->moves[0] = switches->moves[1] = -1;
	switches->of_cpu = xcalloc(switches->nr_cpus, sizeof(*switches->of_cpu));
	for (int cpu = 0; cpu < switches->nr_cpus; cpu++)
		switches->of_cpu[cpu] = (struct switch_event){.fd = -1, .link = -1};
	switches->object = object_open("cgroups");
	err = switches->object ? load_programs(switches) : -errno;
	if (err) {
		cgroup_switches_close(switches);
		return err;
	}
	switches->moves[0] =
		bpf_raw_tracepoint_open("cgroup_notify_populated", program_fd(switches, "add_until_now"));
	switches->moves[1] = bpf_raw_tracepoint_open("cgroup_attach_task", program_fd(switches, "on_move"));
	*result = switches;
	return 0;
}

void cgroup_switches_close(struct cgroup_switches *switches)
{
	if (!switches)
		return;
	for (int cpu = 0; cpu < switches->nr_cpus; cpu++)
		cgroup_switches_leave(switches, cpu);
	if (switches->sums)
		munmap(switches->sums, switches->mapped_sums);
	if (switches->cpus)
		munmap(switches->cpus, switches->mapped_cpus);
	for (size_t i = 0; i < ARRAY_SIZE(switches->moves); i++)
		if (switches->moves[i] >= 0)
			close(switches->moves[i]);
	bpf_object__close(switches->object);
	free(switches->of_cpu);
	free(switches);
}

/* Puts a counter where the program reads it. Returns 0 or -errno. */
static int put_counter(const struct cgroup_switches *switches, int cpu, size_t i, int fd)
{
	__u32 index = cpu * (switches->events + 1) + i;

	return fd < 0 ? 0 : bpf_map_update_elem(map_fd(switches, "counters"), &index, &fd, BPF_ANY);
}

int cgroup_switches_join(struct cgroup_switches *switches, int cpu, const int *fds)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CGROUP_SWITCHES,
		.sample_period = 1,
		.wakeup_events = 1,
		.disabled = 1,
	};
	struct switch_event *event = &switches->of_cpu[cpu];
	int err = 0;

	memset(switches->cpus[cpu].last, 0, sizeof(switches->cpus[cpu].last));
	switches->cpus[cpu].switches = 0;
	event->fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (event->fd < 0)
		return -errno;
	for (size_t i = 0; i < switches->events && !err; i++)
		err = put_counter(switches, cpu, i, fds[i]);
	err = err ? err : put_counter(switches, cpu, switches->events, event->fd);
	if (!err) {
		event->link = bpf_link_create(program_fd(switches, "on_cgroup_switch"), event->fd,
					      BPF_PERF_EVENT, NULL);
		err = event->link < 0 || ioctl(event->fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
	}
	if (err)
		cgroup_switches_leave(switches, cpu);
	return err;
}

void cgroup_switches_leave(struct cgroup_switches *switches, int cpu)
{
	struct switch_event *event = &switches->of_cpu[cpu];

	for (size_t i = 0; event->fd >= 0 && i <= switches->events; i++) {
		__u32 index = cpu * (switches->events + 1) + i;

		bpf_map_delete_elem(map_fd(switches, "counters"), &index);
	}
	if (event->link >= 0)
		close(event->link);
	if (event->fd >= 0)
		close(event->fd);
	event->fd = event->link = -1;
}

void cgroup_switches_gather(struct cgroup_switches *switches)
{
	for (int cpu = 0; cpu < switches->nr_cpus; cpu++) {
		LIBBPF_OPTS(bpf_test_run_opts, run, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);

		if (switches->of_cpu[cpu].fd >= 0)
			bpf_prog_test_run_opts(program_fd(switches, "add_until_now"), &run);
	}
}

void cgroup_switches_each(const struct cgroup_switches *switches, cgroup_sums_fn each, void *context)
{
	for (size_t i = 0; i < switches->nr_cpus * switches->stride; i++) {
		const struct cgroup_sums *of = cgroup_sums_at(switches, i);

		if (of->cgroup != CGROUP_NONE && of->cgroup != CGROUP_RELEASED &&
		    (of->cgroup < CGROUP_NO_CGROUP || of->counts[0].enabled_ns))
			each(context, of->cgroup, (const struct count *)of->counts);
	}
}

/* Nothing runs in the cgroup any more, so no program writes its sums. */
void cgroup_switches_release(struct cgroup_switches *switches, __u64 id)
{
	for (size_t i = 0;
	     id != CGROUP_NONE && id < CGROUP_NO_CGROUP && i < switches->nr_cpus * switches->stride; i++) {
		struct cgroup_sums *of = cgroup_sums_at(switches, i);

		if (of->cgroup != id)
			continue;
		memset(of->counts, 0, switches->events * sizeof(of->counts[0]));
		__atomic_store_n(&of->cgroup, CGROUP_RELEASED, __ATOMIC_RELEASE);
	}
}

void cgroup_switches_account(const struct cgroup_switches *switches, __u64 *all, __u64 *missed)
{
	*all = *missed = 0;
	for (int cpu = 0; cpu < switches->nr_cpus; cpu++) {
		*all += switches->cpus[cpu].seen + switches->cpus[cpu].missed;
		*missed += switches->cpus[cpu].missed;
	}
}
