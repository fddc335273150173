// SPDX-License-Identifier: GPL-2.0-only
#include "plan/permission.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "host/kernel.h"
#include "plan/denial.h"

static void number(struct permission *permission, long long value)
{
	permission->kind = PERMISSION_NUMBER;
	permission->number = value;
}

static void word(struct permission *permission, const char *value)
{
	permission->kind = PERMISSION_WORD;
	snprintf(permission->word, sizeof(permission->word), "%s", value);
}

static bool holds(const struct host *host, int capability)
{
	return host->capabilities >> capability & 1;
}

/* --- perf ------------------------------------------------------------------------------------- */

static void judge_paranoid(struct permission *permission, struct host *host)
{
	int level = host->perf_event_paranoid;
	struct refusal *refusal = &permission->refusal;

	if (level == INT_MIN) {
		word(permission, "absent");
		because(refusal, "this kernel was built without perf events");
		instead(refusal, "run a kernel with CONFIG_PERF_EVENTS=y");
		return;
	}
	number(permission, level);
	permission->ok = level <= 0 || (level >= PARANOID_ALL ? holds(host, CAP_SYS_ADMIN)
							      : host_capable(host, CAP_PERFMON));
	if (level >= PARANOID_ALL)
		because(refusal, "it lets only CAP_SYS_ADMIN open events; CAP_PERFMON is not enough");
	else
		because(refusal, "without CAP_PERFMON it allows %s",
			level == 2 ? "only the user's side of one's own processes"
				   : "one's own processes, but no whole CPUs");
	instead(refusal, "sysctl kernel.perf_event_paranoid=%d, or give %s", level >= PARANOID_ALL ? 2 : 0,
		level >= PARANOID_ALL ? "CAP_SYS_ADMIN" : "CAP_PERFMON");
}

/* --- capabilities ----------------------------------------------------------------------------- */

static void capability(struct permission *permission, const struct host *host, int which)
{
	bool held = holds(host, which), stood_in = holds(host, CAP_SYS_ADMIN);

	word(permission, held ? "held" : stood_in ? "by CAP_SYS_ADMIN" : "missing");
	permission->ok = held || stood_in;
}

static void judge_perfmon(struct permission *permission, struct host *host)
{
	capability(permission, host, CAP_PERFMON);
	because(&permission->refusal,
		"BPF programs may not be attached to events, and "
		"perf_event_paranoid (%d) holds for this process",
		host->perf_event_paranoid);
	instead(&permission->refusal, "run as root, or setcap cap_perfmon,cap_bpf+ep nhmtap; "
				      "docker run --cap-add PERFMON");
}

static void judge_bpf(struct permission *permission, struct host *host)
{
	capability(permission, host, CAP_BPF);
	because(&permission->refusal, "BPF programs and tables can't be loaded");
	instead(&permission->refusal, "run as root, or setcap cap_perfmon,cap_bpf+ep nhmtap; "
				      "docker run --cap-add BPF");
}

static void judge_admin(struct permission *permission, struct host *host)
{
	bool held = holds(host, CAP_SYS_ADMIN);

	permission->ok = held || host->perf_event_paranoid < PARANOID_ALL;
	word(permission, held ? "held" : permission->ok ? "missing, not needed" : "missing");
	because(&permission->refusal,
		"perf_event_paranoid is %d, and at %d or more nothing can be "
		"opened without it",
		host->perf_event_paranoid, PARANOID_ALL);
	instead(&permission->refusal, "run as root, or sysctl kernel.perf_event_paranoid=2");
}

/* --- filters ---------------------------------------------------------------------------------- */

static void judge_seccomp(struct permission *permission, struct host *host)
{
	static const char *const modes[] = {"off", "strict", "filter"};

	word(permission, host->seccomp >= 0 && host->seccomp <= 2 ? modes[host->seccomp] : "unknown");
	/* A filter may allow what is needed: the system calls themselves are asked. */
	permission->ok = !host->perf_filtered;
	because(&permission->refusal, "the seccomp filter of this process refuses perf_event_open");
	instead(&permission->refusal, REMEDY_SECCOMP_PERF);
}

static void judge_lockdown(struct permission *permission, struct host *host)
{
	word(permission, host->lockdown[0] ? host->lockdown : "not built in");
	permission->ok = strcmp(host->lockdown, "confidentiality");
	because(&permission->refusal, REASON_LOCKDOWN);
	instead(&permission->refusal, REMEDY_LOCKDOWN);
}

/* --- limits ----------------------------------------------------------------------------------- */

#define EVENTS_EXPECTED 16 /* a large run's */

static void judge_descriptors(struct permission *permission, struct host *host)
{
	__u64 needed = EVENTS_EXPECTED * cpus_count(&host->online) + 64;

	number(permission, host->descriptor_limit);
	permission->ok = host->descriptor_limit >= needed;
	because(&permission->refusal,
		"an event takes a descriptor on each CPU: %d events on all CPUs "
		"need %llu",
		EVENTS_EXPECTED, needed);
	instead(&permission->refusal, "ulimit -Hn %llu", needed);
}

static void judge_memory(struct permission *permission, struct host *host)
{
	if (host->locked_memory_limit == RLIM_INFINITY)
		word(permission, "unlimited");
	else
		number(permission, host->locked_memory_limit);
	/* From 5.11 on BPF's memory is accounted to the cgroup instead. */
	permission->ok = host->locked_memory_limit == RLIM_INFINITY || kernel_at_least(host, 5, 11) ||
			 holds(host, CAP_SYS_RESOURCE);
	because(&permission->refusal, "before Linux 5.11 the tables of BPF programs count as locked "
				      "memory");
	instead(&permission->refusal, "ulimit -l unlimited");
}

static void judge_virtual(struct permission *permission, struct host *host)
{
	word(permission, host->virtual ? "yes" : "no");
	permission->ok = !host->virtual || host_core_pmu(host);
	kernel_lacks_pmu(host, "cpu", &permission->refusal);
}

static const struct {
	const char *name;
	void (*judge)(struct permission *permission, struct host *host);
} judges[NR_PERMISSIONS] = {
	{"perf_event_paranoid", judge_paranoid},
	{"CAP_PERFMON", judge_perfmon},
	{"CAP_BPF", judge_bpf},
	{"CAP_SYS_ADMIN", judge_admin},
	{"seccomp", judge_seccomp},
	{"lockdown", judge_lockdown},
	{"open_files_limit", judge_descriptors},
	{"locked_memory_limit", judge_memory},
	{"virtual_machine", judge_virtual},
};

void permissions_judge(struct permission list[NR_PERMISSIONS], struct host *host)
{
	for (int i = 0; i < NR_PERMISSIONS; i++) {
		list[i] = (struct permission){.name = judges[i].name};
		judges[i].judge(&list[i], host);
		if (list[i].ok)
			list[i].refusal = (struct refusal){0};
	}
}
