// SPDX-License-Identifier: GPL-2.0-only
#include "plan/denial.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>

#include "base/array.h"
#include "event/encoding.h"
#include "host/kernel.h"

struct denied {
	struct refusal *refusal;
	struct host *host;
	const struct plan *plan;
	const struct event *event;
	size_t instances;
};

/* --- permissions ------------------------------------------------------------------------------ */

static bool is_trace(const struct denied *d)
{
	const struct pmu *bts = host_pmu(d->host, "intel_bts");

	return bts && bts->type == d->event->attr.type;
}

/* Whether it samples physical addresses. They need the same permission as the kernel's side:
 * perf_event_open(), kernel/events/core.c. */
static bool is_physical(const struct denied *d)
{
	return d->event->attr.sample_type & PERF_SAMPLE_PHYS_ADDR;
}

/* ftrace:function, whose number, TRACE_FN, all kernels share: perf_trace_event_perm(). */
static bool is_every_function(const struct denied *d)
{
	return d->event->attr.type == PERF_TYPE_TRACEPOINT && d->event->attr.config == 1;
}

/* The highest perf_event_paranoid at which an unprivileged user may do this: sysctl/kernel.rst. For BTS it is
 * bts_event_init(), bts.c: even a trace of user space shows kernel addresses. */
static int needed_level(const struct denied *d)
{
	if (is_every_function(d))
		return -1;
	if (d->plan->target.cpus_given)
		return 0;
	return d->event->attr.exclude_kernel && !is_trace(d) && !is_physical(d) ? 2 : 1;
}

static const char *what_needs_level(const struct denied *d, int level)
{
	return level < 0	? "the tracepoint of all of the kernel's functions needs"
	       : level == 0	? "events of whole CPUs need"
	       : level == 2	? "any event needs"
	       : is_trace(d)	? "branch traces need"
	       : is_physical(d) ? "physical addresses need"
				: "the kernel's side needs";
}

/* Whether the request would be permitted without the kernel's side. */
static bool may_leave_kernel(const struct denied *d)
{
	return !d->event->sideless && !d->event->attr.exclude_kernel && !is_physical(d) &&
	       d->host->perf_event_paranoid == 2;
}

static int denied_by_paranoid(const struct denied *d, int level)
{
	because(d->refusal, "kernel.perf_event_paranoid is %d; without privileges %s %d or less",
		d->host->perf_event_paranoid, what_needs_level(d, level), level);
	if (d->host->user_namespace) {
		because(d->refusal,
			"kernel.perf_event_paranoid is %d, and %s %d or less: root of a user namespace has "
			"no capability that counts",
			d->host->perf_event_paranoid, what_needs_level(d, level), level);
		return instead(d->refusal, "%s" REMEDY_USER_NAMESPACE,
			       level == 1 && may_leave_kernel(d)
				       ? "ask for the user's side only (EVENT:u), or "
				       : "");
	}
	if (level == 1 && may_leave_kernel(d))
		return instead(d->refusal,
			       "ask for the user's side only (%s:u), or: sysctl "
			       "kernel.perf_event_paranoid=1, or give CAP_PERFMON",
			       d->event->known ? d->event->known->name : "EVENT");
	return instead(d->refusal, "sysctl kernel.perf_event_paranoid=%d, or give %s", level,
		       d->host->perf_event_paranoid >= PARANOID_ALL
			       ? "CAP_SYS_ADMIN (at level 3 CAP_PERFMON is not enough)"
			       : "CAP_PERFMON");
}

static int denied_access(const struct denied *d)
{
	int level = needed_level(d);
	bool privileged = d->host->perf_event_paranoid >= PARANOID_ALL
				  ? d->host->capabilities >> CAP_SYS_ADMIN & 1
				  : host_capable(d->host, CAP_PERFMON);

	if (!privileged && d->host->perf_event_paranoid > level)
		return denied_by_paranoid(d, level);
	if (d->plan->target.nr_pids || d->plan->target.nr_tids) {
		if (d->host->user_namespace) {
			because(d->refusal, "a process of another user, or outside of this user namespace, "
					    "may not be looked at");
			return instead(d->refusal,
				       "run as its user where it runs, or " REMEDY_USER_NAMESPACE);
		}
		because(d->refusal, "a process of another user may not be looked at");
		return instead(d->refusal, "run as its user, or give CAP_PERFMON");
	}
	if (!strcmp(d->host->lockdown, "confidentiality")) {
		because(d->refusal, REASON_LOCKDOWN);
		return instead(d->refusal, REMEDY_LOCKDOWN);
	}
	because(d->refusal, "a security module of this machine refuses it");
	return instead(d->refusal, "see the kernel's audit log for its name");
}

static int denied_seccomp(const struct denied *d)
{
	if (d->host->seccomp == 2) {
		because(d->refusal, "a seccomp filter of this process refuses perf_event_open");
		return instead(d->refusal, REMEDY_SECCOMP_PERF);
	}
	return denied_access(d);
}

static int denied_nosys(const struct denied *d)
{
	if (d->host->perf_event_paranoid != INT_MIN)
		return denied_seccomp(d);
	because(d->refusal, "this kernel was built without perf events");
	return instead(d->refusal, "run a kernel with CONFIG_PERF_EVENTS=y");
}

/* --- the request ------------------------------------------------------------------------------ */

static bool needs_hardware(const struct event *event)
{
	return event->attr.type == PERF_TYPE_HARDWARE || event->attr.type == PERF_TYPE_HW_CACHE ||
	       event->attr.type == PERF_TYPE_RAW;
}

static int denied_absent(const struct denied *d)
{
	const struct target *target = &d->plan->target;

	if (target->nr_cgroups && (!needs_hardware(d->event) || host_core_pmu(d->host)))
		return cgroup_denied(d->refusal, d->host, target->cgroups[0].path, ENOENT);
	if (!needs_hardware(d->event)) {
		because(d->refusal, "this machine's kernel does not have it");
		return instead(d->refusal, "use another event; perf list shows what there is");
	}
	if (!host_core_pmu(d->host))
		return kernel_lacks_pmu(d->host, "cpu", d->refusal);
	because(d->refusal, "this CPU's driver does not have it");
	return instead(d->refusal, "use another event, or its raw code rNNNN");
}

static int denied_unsupported(const struct denied *d)
{
	if (needs_hardware(d->event) && !host_core_pmu(d->host))
		return denied_absent(d);
	if (d->event->attr.branch_sample_type && !needs_hardware(d->event)) {
		because(d->refusal, "only the core's own events come with the branches that led to them");
		return instead(d->refusal, host_core_pmu(d->host)
						   ? "leave out -e: retired branches are the default"
						   : "run on a machine with a core PMU; this one has none");
	}
	if (d->event->attr.precise_ip) {
		because(d->refusal, "the PMU has no precise sampling of level %d",
			(int)d->event->attr.precise_ip);
		return instead(d->refusal, "leave out the modifier p, or lower it");
	}
	if (d->event->attr.branch_sample_type) {
		because(d->refusal,
			"the CPU, or its driver here, has no last branch record, or not this filter");
		return instead(d->refusal, "profile shows where samples fall, without branches");
	}
	because(d->refusal, "the PMU supports %s, but not this",
		d->event->attr.sample_period ? "counting" : "other events");
	return instead(d->refusal,
		       d->event->attr.sample_period ? "count it with nhmtap stat" : "use another event");
}

static int denied_invalid(const struct denied *d)
{
	const struct perf_event_attr *attr = &d->event->attr;

	if (d->event->group >= 0) {
		because(d->refusal, "the kernel can't run the group with this event in it");
		return instead(d->refusal, "make the group smaller, or take the braces away");
	}
	if (attr->precise_ip) {
		because(d->refusal, "the kernel's driver does not sample this event precisely");
		return instead(d->refusal, "leave out the modifier p");
	}
	if (attr->type == PERF_TYPE_RAW && attr->config & CONFIG_ANY) {
		because(d->refusal, "the kernel's driver does not take any (both threads of a core) on this "
				    "CPU: it came with architectural perfmon version 3");
		return instead(d->refusal, "leave out any, and count both threads");
	}
	if (attr->sample_period && d->event->sideless) {
		/* msr_event_init(), cstate_pmu_event_init(), rapl_pmu_event_init(), uncore_pmu_event_init()
		 */
		because(d->refusal, "its PMU counts, and takes no samples");
		return instead(d->refusal, "count it with nhmtap stat");
	}
	because(d->refusal, "the kernel refuses this request: type %u, config 0x%llx, config1 0x%llx%s",
		attr->type, attr->config, attr->config1,
		attr->sample_period && !attr->freq ? ", and its period" : "");
	return instead(d->refusal, "check the event's bits%s",
		       attr->sample_period && !attr->freq ? "; some PMUs refuse short periods" : "");
}

static int denied_descriptors(const struct denied *d)
{
	size_t needed = d->instances * d->plan->events.nr;

	because(d->refusal,
		"it takes %zu descriptors (%zu events on %zu CPUs and threads) beside the run's own, and "
		"%llu may be open",
		needed, d->plan->events.nr, d->instances, d->host->descriptor_limit);
	return instead(d->refusal, "ulimit -Hn %zu, or ask for fewer events or CPUs", needed + 64);
}

static int denied_gone(const struct denied *d)
{
	because(d->refusal, "the process has ended, or its threads come and go too fast");
	return instead(d->refusal, "see ps -e, or measure its CPUs with -C");
}

static int denied_offline(const struct denied *d)
{
	because(d->refusal, "a CPU of the target went offline");
	return instead(d->refusal, "see /sys/devices/system/cpu/online");
}

static int denied_busy(const struct denied *d)
{
	if (is_trace(d)) {
		because(d->refusal,
			"another user has the last branch record (nhmtap branch, precise_ip 2, perf record "
			"-b), or traces this thread; the CPU does one of these at a time");
		return instead(d->refusal, "end the other one, or trace when it has ended");
	}
	if (d->event->attr.branch_sample_type || d->event->attr.precise_ip > 1) {
		because(d->refusal,
			"another user traces branches (intel_bts), which takes the last branch record too");
		return instead(d->refusal, "end the trace; precise_ip 1 and profile go beside it");
	}
	because(d->refusal, "another user of the PMU has it for itself");
	return instead(d->refusal, "end the other one (a running perf, the NMI watchdog)");
}

static int denied_memory(const struct denied *d)
{
	because(d->refusal, "the kernel has no memory for it");
	return instead(d->refusal, "free memory, or raise the memory limit of this process's cgroup");
}

static const struct {
	int error;
	int (*explain)(const struct denied *);
} explanations[] = {
	{EACCES, denied_access},	  {EPERM, denied_seccomp},  {ENOSYS, denied_nosys},
	{ENOENT, denied_absent},	  {ENODEV, denied_offline}, {EINVAL, denied_invalid},
	{EOPNOTSUPP, denied_unsupported}, {ESRCH, denied_gone},	    {EMFILE, denied_descriptors},
	{ENFILE, denied_descriptors},	  {EBUSY, denied_busy},	    {ENOMEM, denied_memory},
};

int open_denied(struct refusal *refusal, struct host *host, const struct plan *plan,
		const struct event *event, int error, size_t instances)
{
	struct denied denied = {refusal, host, plan, event, instances};

	refuse(refusal, STATUS_REFUSED, "event '%s'", event->name);
	refusal->error = error;
	for (size_t i = 0; i < ARRAY_SIZE(explanations); i++)
		if (explanations[i].error == error)
			return explanations[i].explain(&denied);
	return because(refusal, "the kernel refuses it: %s", strerror(error));
}

/* --- traces ------------------------------------------------------------------------------------ */

int trace_denied(struct refusal *refusal, const struct host *host, int error)
{
	refuse(refusal, STATUS_REFUSED, "a buffer for the branch trace");
	refusal->error = error;
	if (error == EPERM && !host_capable(host, CAP_IPC_LOCK)) {
		because(refusal, "without CAP_IPC_LOCK a user has only so much locked memory for buffers "
				 "(kernel.perf_event_mlock_kb, ulimit -l), and it is in use");
		return instead(refusal, "sysctl kernel.perf_event_mlock_kb=4096, or trace fewer threads");
	}
	because(refusal, "the kernel provides none: %s", strerror(error));
	return instead(refusal, error == ENOMEM ? "free memory: it needs contiguous pages"
						: "use the LBR: nhmtap branch without --trace");
}

/* --- BPF -------------------------------------------------------------------------------------- */

const char *remedy_by_setcap(const struct host *host, const char *setcap)
{
	return host->no_new_privs ? "run as root, or start it without no_new_privs, under which setcap and "
				    "sudo have no effect"
				  : setcap;
}

int bpf_denied(struct refusal *refusal, const struct host *host, const char *step, int error, const char *log)
{
	refuse(refusal, STATUS_REFUSED, "%s", step);
	refusal->error = error;
	if (error == EPERM && !(host_capable(host, CAP_BPF) && host_capable(host, CAP_PERFMON))) {
		if (host->user_namespace) {
			because(refusal, "loading BPF programs takes CAP_BPF and CAP_PERFMON in the first "
					 "user namespace; this process is root of another at most");
			return instead(refusal, REMEDY_USER_NAMESPACE);
		}
		because(refusal, "loading BPF programs takes CAP_BPF and CAP_PERFMON; this process has %s",
			host_capable(host, CAP_BPF)	  ? "only CAP_BPF"
			: host_capable(host, CAP_PERFMON) ? "only CAP_PERFMON"
							  : "neither");
		return instead(refusal, "%s",
			       remedy_by_setcap(host,
						"run as root, or give both: setcap cap_bpf,cap_perfmon+ep, "
						"docker run --cap-add BPF --cap-add PERFMON"));
	}
	if ((error == EPERM || error == ENOSYS) && host->seccomp == 2) {
		because(refusal, "a seccomp filter of this process refuses bpf()");
		return instead(
			refusal,
			"start the container with --cap-add BPF, or with a seccomp profile that allows it");
	}
	if (error == ENOSYS) {
		because(refusal, "this kernel was built without bpf()");
		return instead(refusal, "run a kernel with CONFIG_BPF_SYSCALL=y");
	}
	if (error == EPERM && !strcmp(host->lockdown, "confidentiality")) {
		because(refusal, REASON_LOCKDOWN);
		return instead(refusal, REMEDY_LOCKDOWN);
	}
	if (error == EPERM && host->locked_memory_limit != RLIM_INFINITY) {
		/* Before 5.11, BPF memory counts against RLIMIT_MEMLOCK, and the error is EPERM. */
		because(refusal, "the kernel gives BPF no memory; locked memory is limited to %llu KiB",
			host->locked_memory_limit / 1024);
		return instead(refusal, "ulimit -l unlimited, or raise the memory limit of the cgroup");
	}
	if (error == ENOMEM) {
		because(refusal, "there is no memory for BPF programs and their tables");
		return instead(refusal, "raise the limit (ulimit -v, memory.max of the cgroup)");
	}
	/* 5.12 has "bpf: Support pointers in global func args" (e5069b9c23b3). Linux 5.10 does not accept
	 * tables as large as those of mem either. */
	if ((error == EINVAL || error == E2BIG) && !kernel_at_least(host, 5, 12)) {
		because(refusal,
			"samples are aggregated by BPF functions that Linux takes from 5.12 on; this is %s",
			host->release);
		return instead(refusal,
			       "run a newer kernel, 6.1 for example; stat and offcore count on this one");
	}
	because(refusal, "%s%s%.300s", strerror(error), log[0] ? ": " : "", log);
	return instead(refusal, error == EEXIST ? "another BPF program is attached to this event" : "");
}

/* --- cgroups ---------------------------------------------------------------------------------- */

int cgroup_denied(struct refusal *refusal, struct host *host, const char *path, int error)
{
	refuse(refusal, STATUS_REFUSED, "events of the cgroup '%s'", path);
	refusal->error = error;
	if (!path[0]) {
		because(refusal, "no cgroup hierarchy with perf events is mounted");
		return instead(refusal, "mount -t cgroup2 none /sys/fs/cgroup");
	}
	if (kernel_config(host, "CONFIG_CGROUP_PERF") == 'n') {
		because(refusal, "this kernel was built without events of cgroups");
		return instead(refusal, "run a kernel with CONFIG_CGROUP_PERF=y");
	}
	if (error == ENOENT) {
		because(refusal, "the hierarchy has no controller switched on yet");
		return instead(refusal, "echo +pids > %s/cgroup.subtree_control", path);
	}
	because(refusal, "the kernel refuses it: %s", strerror(error));
	return instead(refusal, "measure whole CPUs and tell cgroups apart: nhmtap profile -a --by cgroup");
}

/* --- silence ---------------------------------------------------------------------------------- */

int silent_denied(struct refusal *refusal, const struct host *host, const char *event, bool ran)
{
	refuse(refusal, STATUS_REFUSED, "event '%s'", event);
	if (ran) {
		because(refusal, "it ran, and counted nothing");
		return instead(refusal,
			       host->virtual ? "see whether the hypervisor passes this event on"
					     : "see the CPU's errata, and dmesg for 'Broken BIOS detected'");
	}
	because(refusal,
		"the kernel opened it, and it never ran: others hold the counters or the register that it "
		"needs%s",
		kernel_nmi_watchdog(host) ? " (the NMI watchdog holds one)" : "");
	return instead(refusal, kernel_nmi_watchdog(host)
					? "sysctl kernel.nmi_watchdog=0, and end other users of the PMU"
					: "end other users of the PMU, on this core's other thread too");
}

/* --- registers -------------------------------------------------------------------------------- */

int msr_denied(struct refusal *refusal, struct host *host, const struct msr *msr)
{
	refuse(refusal, STATUS_REFUSED, "%s (0x%x)", msr->name, msr->address);
	refusal->error = msr->error;
	if (msr->error == ENODEV)
		return because(refusal, "this processor has none (CPUID.1:ECX bit 15, PDCM, is clear)");
	if (msr->error == EACCES || msr->error == EPERM) {
		because(refusal, "reading registers is root's: it takes CAP_SYS_RAWIO");
		return instead(refusal, "run as root");
	}
	if (msr->error == ENOENT && kernel_config(host, "CONFIG_X86_MSR") == 'n') {
		because(refusal, "this kernel was built without /dev/cpu/0/msr");
		return instead(refusal, "run a kernel with CONFIG_X86_MSR");
	}
	if (msr->error == ENOENT || msr->error == ENXIO) {
		because(refusal, "the driver of /dev/cpu/0/msr is not loaded");
		return instead(refusal, "modprobe msr");
	}
	if (msr->error == EIO)
		return because(refusal, "this processor has no such register%s",
			       host->virtual ? ", or its hypervisor hides it" : "");
	return because(refusal, "it can't be read: %s", strerror(msr->error));
}
