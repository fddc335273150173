// SPDX-License-Identifier: GPL-2.0-only
#include "plan/permission.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "host/files.h"
#include "host/kernel.h"
#include "plan/denial.h"

static void set_number(struct permission *permission, long long value)
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

static const char *absent(const struct host *host, int capability)
{
	return host->held_there >> capability & 1 ? "in its user namespace" : "missing";
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
	set_number(permission, level);
	permission->ok = level <= 0 || (level >= PARANOID_ALL ? holds(host, CAP_SYS_ADMIN)
							      : host_capable(host, CAP_PERFMON));
	if (level >= PARANOID_ALL)
		because(refusal, "it lets only CAP_SYS_ADMIN open events; CAP_PERFMON is not enough");
	else
		because(refusal, "without CAP_PERFMON it allows %s",
			level == 2 ? "only the user's side of one's own processes"
				   : "one's own processes, but no whole CPUs");
	instead(refusal, "sysctl kernel.perf_event_paranoid=%d, or %s", level >= PARANOID_ALL ? 2 : 0,
		host->user_namespace	? REMEDY_USER_NAMESPACE
		: level >= PARANOID_ALL ? "give CAP_SYS_ADMIN"
					: "give CAP_PERFMON");
}

/* --- capabilities ----------------------------------------------------------------------------- */

static void capability(struct permission *permission, const struct host *host, int which)
{
	bool held = holds(host, which), stood_in = holds(host, CAP_SYS_ADMIN);

	word(permission, held ? "held" : stood_in ? "by CAP_SYS_ADMIN" : absent(host, which));
	permission->ok = held || stood_in;
}

static void judge_perfmon(struct permission *permission, struct host *host)
{
	capability(permission, host, CAP_PERFMON);
	because(&permission->refusal,
		"BPF programs may not be attached to events, and perf_event_paranoid (%d) holds for this "
		"process",
		host->perf_event_paranoid);
	instead(&permission->refusal, "%s",
		remedy_by_setcap(host, "run as root, or setcap cap_perfmon,cap_bpf+ep nhmtap; docker run "
				       "--cap-add PERFMON"));
}

static void judge_bpf(struct permission *permission, struct host *host)
{
	capability(permission, host, CAP_BPF);
	because(&permission->refusal, "BPF programs and tables can't be loaded");
	instead(&permission->refusal, "%s",
		remedy_by_setcap(
			host,
			"run as root, or setcap cap_perfmon,cap_bpf+ep nhmtap; docker run --cap-add BPF"));
}

static void judge_admin(struct permission *permission, struct host *host)
{
	bool held = holds(host, CAP_SYS_ADMIN);

	permission->ok = held || host->perf_event_paranoid < PARANOID_ALL;
	word(permission, held		  ? "held"
			 : permission->ok ? "missing, not needed"
					  : absent(host, CAP_SYS_ADMIN));
	because(&permission->refusal,
		"perf_event_paranoid is %d, and at %d or more nothing can be opened without it",
		host->perf_event_paranoid, PARANOID_ALL);
	instead(&permission->refusal, "run as root, or sysctl kernel.perf_event_paranoid=2");
}

/* --- what names need -------------------------------------------------------------------------- */

/* kallsyms_show_value(), kernel/ksyms_common.c */
static void judge_syslog(struct permission *permission, struct host *host)
{
	long restricted = slurp_number(host, "/proc/sys/kernel/kptr_restrict", 0);
	bool held = holds(host, CAP_SYSLOG), needed = restricted || host->perf_event_paranoid > 1;

	permission->ok = restricted < 2 && (held || !needed);
	word(permission, held ? "held" : needed ? absent(host, CAP_SYSLOG) : "missing, not needed");
	because(&permission->refusal,
		"%s hides the kernel's symbols: its code goes by addresses, without names",
		restricted >= 2 ? "kernel.kptr_restrict=2" : "the kernel");
	instead(&permission->refusal, "%s",
		restricted >= 2 ? "sysctl kernel.kptr_restrict=1"
				: remedy_by_setcap(host, "run as root, or setcap cap_syslog+ep nhmtap; "
							 "docker run --cap-add SYSLOG"));
}

static void judge_capability(struct permission *permission, const struct host *host, int which,
			     const char *lost, const char *name)
{
	permission->ok = holds(host, which);
	word(permission, permission->ok ? "held" : absent(host, which));
	because(&permission->refusal, "%s", lost);
	instead(&permission->refusal, "run as root, or docker run --cap-add %s", name);
}

static void judge_ptrace(struct permission *permission, struct host *host)
{
	judge_capability(permission, host, CAP_SYS_PTRACE,
			 "the mappings and the root of other users' processes can't be looked at: code of "
			 "those that were there before goes without names, and so do containers' files",
			 "SYS_PTRACE");
}

static void judge_search(struct permission *permission, struct host *host)
{
	judge_capability(permission, host, CAP_DAC_READ_SEARCH,
			 "files in folders that are closed to this user can't be read for names, and "
			 "cgroups' paths are searched for one by one",
			 "DAC_READ_SEARCH");
}

static void judge_user_namespace(struct permission *permission, struct host *host)
{
	permission->ok = !host->user_namespace;
	word(permission, host->user_namespace ? "nested" : "initial");
	because(&permission->refusal,
		"capabilities count only in the first one: this process has none that count, root or not%s",
		host->perf_event_paranoid > 1 ? "; it may count the user's side of its own processes" : "");
	instead(&permission->refusal, REMEDY_USER_NAMESPACE);
}

static void judge_pid_namespace(struct permission *permission, struct host *host)
{
	struct refusal *refusal = &permission->refusal;

	permission->ok = host->pid_namespace.initial && !host->proc_foreign;
	word(permission, host->proc_foreign	       ? "not that of /proc"
			 : host->pid_namespace.initial ? "initial"
						       : "nested");
	if (host->proc_foreign) {
		because(refusal, "/proc has the numbers of another one: no process can be measured by its "
				 "id, and those that were there before are looked at late");
		instead(refusal, "mount -t proc proc /proc, or start it all with unshare --mount-proc");
		return;
	}
	because(refusal, "processes that are not in it have no pid, and their code has no names%s",
		host->btf ? "" : "; nor, without the kernel's BTF, have those in deeper ones");
	instead(refusal, "run in the host's: docker run --pid=host, hostPID of a Kubernetes pod");
}

/* --- filters ---------------------------------------------------------------------------------- */

static void judge_seccomp(struct permission *permission, struct host *host)
{
	static const char *const modes[] = {"off", "strict", "filter"};

	word(permission, host->seccomp >= 0 && host->seccomp <= 2 ? modes[host->seccomp] : "unknown");
	/* With a filter, what counts is whether the system calls themselves succeed. */
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

#define EVENTS_EXPECTED 16 /* number of events of a large run */

static void judge_descriptors(struct permission *permission, struct host *host)
{
	__u64 needed = EVENTS_EXPECTED * cpus_count(&host->online) + 64;

	set_number(permission, host->descriptor_limit);
	permission->ok = host->descriptor_limit >= needed;
	because(&permission->refusal,
		"an event takes a descriptor on each CPU: %d events on all CPUs need %llu", EVENTS_EXPECTED,
		needed);
	instead(&permission->refusal, "ulimit -Hn %llu", needed);
}

static void judge_memory(struct permission *permission, struct host *host)
{
	if (host->locked_memory_limit == RLIM_INFINITY)
		word(permission, "unlimited");
	else
		set_number(permission, host->locked_memory_limit);
	/* From 5.11 on, BPF memory is charged to the cgroup instead. */
	permission->ok = host->locked_memory_limit == RLIM_INFINITY || kernel_at_least(host, 5, 11) ||
			 holds(host, CAP_SYS_RESOURCE);
	because(&permission->refusal, "before Linux 5.11 the tables of BPF programs count as locked memory");
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
	{"CAP_SYSLOG", judge_syslog},
	{"CAP_SYS_PTRACE", judge_ptrace},
	{"CAP_DAC_READ_SEARCH", judge_search},
	{"user_namespace", judge_user_namespace},
	{"pid_namespace", judge_pid_namespace},
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
		/* In another user namespace these capabilities have no effect. */
		if (host->user_namespace && !strncmp(list[i].name, "CAP_", 4))
			instead(&list[i].refusal, REMEDY_USER_NAMESPACE);
		if (list[i].ok)
			list[i].refusal = (struct refusal){0};
	}
}
