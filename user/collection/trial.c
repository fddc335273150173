// SPDX-License-Identifier: GPL-2.0-only
#include "collection/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "aggregation/aggregation.h"
#include "aggregation/unwind_memory.h"
#include "base/clock.h"
#include "collection/trace.h"
#include "plan/denial.h"
#include "plan/plan.h"
#include "shared.h"

/* --- something to measure --------------------------------------------------------------------- */

#define WORK_NS	   10000000  /* several ticks of the scheduler and of a sampling clock */
#define WORK_BYTES (1 << 20) /* more than a core's second level cache, so that loads leave the core */
#define LINE	   64

/* Does loads, stores, branches, page faults and system calls in this thread. */
static void do_work(void)
{
	__u64 end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;
	volatile char *memory =
		mmap(NULL, WORK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return;
	do {
		for (int i = 0; i < WORK_BYTES; i += LINE)
			memory[i]++;
	} while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
	munmap((void *)memory, WORK_BYTES);
}

/* --- a plan, opened --------------------------------------------------------------------------- */

struct opened {
	struct plan plan;
	struct counters *counters;
};

static int plan_trial(struct plan *plan, const struct trial *trial, struct host *host,
		      struct refusal *refusal)
{
	struct options options = {.events = trial->events, .period = trial->period};
	const char *sampled = trial->events ? trial->events : plan_default_sampled(plan, host);
	char number[16];
	int err;

	snprintf(number, sizeof(number), "%d",
		 trial->target == ON_SELF ? getpid() : cpus_next(&host->online, 0));
	options.all_cpus = trial->target == ON_ALL_CPUS;
	options.tids = trial->target == ON_SELF ? number : NULL;
	options.cpus = trial->target == ON_A_CPU ? number : NULL;
	err = trial->sampled ? plan_sampling(plan, sampled, &options, host, refusal) ||
				       plan_check(plan, &options, host, refusal)
			     : plan_counting(plan, &options, host, refusal);
	for (size_t i = 0; !err && trial->adjust && i < plan->events.nr; i++)
		trial->adjust(&plan->events.list[i].attr);
	return err;
}

static int open_trial(struct opened *opened, const struct trial *trial, struct host *host,
		      struct found *found, struct refusal *refusal)
{
	*opened = (struct opened){0};
	*found = (struct found){0};
	if (plan_trial(&opened->plan, trial, host, refusal))
		return -1;
	snprintf(found->event, sizeof(found->event), "%s", opened->plan.events.list[0].name);
	if (counters_open(&opened->counters, &opened->plan, 0, host, refusal))
		return -1;
	found->opened = true;
	return 0;
}

static void close_trial(struct opened *opened)
{
	counters_close(opened->counters);
	plan_release(&opened->plan);
}

/* Measures the work. `look` is called while the events are enabled. */
static int measure_work(struct opened *opened, struct host *host, struct found *found,
			void (*look)(const struct opened *opened, void *result), void *result,
			struct refusal *refusal)
{
	int err = counters_enable(opened->counters);

	if (!err)
		do_work();
	if (!err && look)
		look(opened, result);
	counters_disable(opened->counters);
	if (!err)
		err = counters_read(opened->counters, 0, &found->count);
	found->counted = !err;
	return err ? open_denied(refusal, host, &opened->plan, &opened->plan.events.list[0], -err,
				 counters_opened(opened->counters))
		   : 0;
}

/* --- counting and sampling -------------------------------------------------------------------- */

#define PROGRAM	       "profile"
#define KEYS	       "cpu"
#define BRANCH_PROGRAM "branch"
#define BRANCH_KEYS    "edge"

/* Whether some entry is a branch, not only a sample. */
static bool has_branch(const struct layout *layout, const struct reading *reading)
{
	const struct member *kind = layout->keys;

	while (kind < layout->keys + layout->nr_keys && strcmp(kind->name, "kind"))
		kind++;
	if (kind == layout->keys + layout->nr_keys)
		return false;
	for (size_t i = 0; i < reading->nr_entries; i++) {
		entry_kind_t value;

		memcpy(&value, (const char *)reading->entries[i].key + kind->offset, sizeof(value));
		if (value == BRANCH_EDGE || value == BRANCH_MISSED)
			return true;
	}
	return false;
}

static int attach(struct aggregation *aggregation, const struct opened *opened, struct host *host,
		  struct refusal *refusal)
{
	if (aggregation_load(aggregation, host, refusal))
		return -1;
	for (size_t i = 0; i < counters_places(opened->counters)->nr; i++) {
		int fd = counters_fd(opened->counters, 0, i);

		if (fd >= 0 && aggregation_attach(aggregation, fd, host, refusal))
			return -1;
	}
	return 0;
}

static int measure_samples(struct opened *opened, const struct trial *trial, struct host *host,
			   struct found *found, struct refusal *refusal)
{
	struct aggregation *aggregation;
	struct reading reading;
	int err = aggregation_open(&aggregation, trial->branches ? BRANCH_PROGRAM : PROGRAM,
				   trial->branches ? BRANCH_KEYS : KEYS, NULL, host, AGGREGATION_BYTES,
				   refusal);

	if (err)
		return err;
	err = attach(aggregation, opened, host, refusal);
	if (!err)
		err = measure_work(opened, host, found, NULL, NULL, refusal);
	if (!err) {
		aggregation_read(aggregation, SIZE_MAX, &reading);
		found->sampled = true;
		found->samples = reading.runs;
		found->branches = has_branch(aggregation_layout(aggregation), &reading);
	}
	aggregation_close(aggregation);
	return err;
}

int trial_run(const struct trial *trial, struct host *host, struct found *found, struct refusal *refusal)
{
	struct opened opened;
	int err = open_trial(&opened, trial, host, found, refusal);

	if (!err)
		err = trial->sampled ? measure_samples(&opened, trial, host, found, refusal)
				     : measure_work(&opened, host, found, NULL, NULL, refusal);
	close_trial(&opened);
	return err;
}

int trial_load(struct host *host, struct refusal *refusal)
{
	struct aggregation *aggregation;
	int err = aggregation_open(&aggregation, PROGRAM, KEYS, NULL, host, AGGREGATION_BYTES, refusal);

	if (err)
		return err;
	err = aggregation_load(aggregation, host, refusal);
	aggregation_close(aggregation);
	return err;
}

#define LITTLE_MEMORY (4UL << 20)

int trial_unwind(struct host *host, struct refusal *refusal)
{
	struct aggregation *aggregation = NULL;
	struct unwind_memory *memory;
	int err;

	if (unwind_memory_open(&memory, LITTLE_MEMORY, host, refusal))
		return -1;
	err = aggregation_open(&aggregation, PROGRAM, "stack", NULL, host, AGGREGATION_BYTES, refusal);
	if (!err) {
		aggregation_stacks(aggregation, true, true, STACK_DEFAULT, false);
		aggregation_unwind(aggregation, memory, false);
		err = aggregation_load(aggregation, host, refusal);
	}
	aggregation_close(aggregation);
	unwind_memory_close(memory);
	return err;
}

/* --- the shared page -------------------------------------------------------------------------- */

static __u64 rdpmc(__u32 counter)
{
#if defined(__x86_64__) || defined(__i386__)
	__u32 low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
	return (__u64)high << 32 | low;
#else
	return 0;
#endif
}

/* Reads the page as linux/perf_event.h describes at perf_event_mmap_page: again if the kernel wrote it
 * meanwhile. */
static void look_at_page(const struct opened *opened, void *result)
{
	int fd = counters_fd(opened->counters, 0, 0);
	size_t size = sysconf(_SC_PAGESIZE);
	volatile struct perf_event_mmap_page *page = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	struct shared_page *shared = result;
	__u32 lock;

	if (page == MAP_FAILED)
		return;
	do {
		__u32 index;

		lock = page->lock;
		__sync_synchronize();
		index = page->index;
		shared->rdpmc = page->cap_user_rdpmc;
		shared->placed = index;
		shared->number = index - 1;
		if (shared->rdpmc && index)
			shared->value = rdpmc(index - 1);
		__sync_synchronize();
	} while (page->lock != lock);
	munmap((void *)page, size);
}

int trial_page(const struct trial *trial, struct host *host, struct found *found, struct shared_page *page,
	       struct refusal *refusal)
{
	struct opened opened;
	int err = open_trial(&opened, trial, host, found, refusal);

	*page = (struct shared_page){0};
	if (!err)
		err = measure_work(&opened, host, found, look_at_page, page, refusal);
	close_trial(&opened);
	return err;
}

/* --- traces ----------------------------------------------------------------------------------- */

int trial_trace(const struct trial *trial, struct host *host, struct found *found, __u64 *bytes,
		struct refusal *refusal)
{
	struct opened opened;
	struct trace *trace = NULL;
	int err = open_trial(&opened, trial, host, found, refusal);

	*bytes = 0;
	if (!err) {
		err = trace_open(&trace, opened.counters, 0);
		if (err)
			trace_denied(refusal, host, -err);
		else
			err = measure_work(&opened, host, found, NULL, NULL, refusal);
		*bytes = trace ? trace_bytes(trace) : 0;
		trace_close(trace);
	}
	close_trial(&opened);
	return err;
}

/* --- cgroups ---------------------------------------------------------------------------------- */

/* libperf can't pass flags, so the system call is made here. Returns a descriptor or -errno. */
static int open_cgroup(const char *path, struct perf_event_attr *attr, int cpu)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	if (folder < 0)
		return -errno;
	fd = syscall(SYS_perf_event_open, attr, folder, cpu, -1, PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(folder);
	return fd;
}

int trial_cgroup(const struct trial *trial, struct host *host, struct found *found, struct refusal *refusal)
{
	struct plan plan = {0};
	/* The root of the hierarchy that perf events belong to: that of perf_event's version 1, if it is
	 * mounted, else cgroup2. */
	const char *path = host->cgroup_v1[0] ? host->cgroup_v1 : host->cgroup_mount;
	int fd, err;

	*found = (struct found){0};
	if (!*path)
		return cgroup_denied(refusal, host, "", ENOENT);
	err = plan_trial(&plan, trial, host, refusal);
	if (err) {
		plan_release(&plan);
		return err;
	}
	snprintf(found->event, sizeof(found->event), "%s", plan.events.list[0].name);
	fd = open_cgroup(path, &plan.events.list[0].attr, cpus_next(&host->online, 0));
	if (fd >= 0)
		close(fd);
	else if (fd == -EACCES || fd == -EPERM || fd == -ENOSYS)
		err = open_denied(refusal, host, &plan, &plan.events.list[0], -fd, 1);
	else
		err = cgroup_denied(refusal, host, path, -fd);
	found->opened = fd >= 0;
	plan_release(&plan);
	return err;
}

/* --- filters ---------------------------------------------------------------------------------- */

int trial_cycles(struct host *host)
{
	const struct pmu *pmu = host_core_pmu(host);
	int level = pmu && pmu->max_precise > 0 ? pmu->max_precise : 0;

	for (; pmu && level >= 0; level--) {
		struct perf_event_attr attr = {
			.size = sizeof(attr),
			.type = PERF_TYPE_HARDWARE,
			.config = PERF_COUNT_HW_CPU_CYCLES,
			.sample_period = 1000003,
			.precise_ip = level,
			.disabled = 1,
			.exclude_kernel = 1,
			.exclude_hv = 1,
		};
		int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0) {
			close(fd);
			return level;
		}
		/* Other errors are reported when the event is opened for the run. */
		if (errno != EINVAL && errno != EOPNOTSUPP && errno != ENOENT)
			return level;
	}
	return -1;
}

bool trial_perf_filtered(void)
{
	/* Flags that no kernel knows are refused before anything else is checked. */
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, ~0UL) < 0 && (errno == EPERM || errno == ENOSYS);
}
