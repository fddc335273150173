// SPDX-License-Identifier: GPL-2.0-only
#include "facility/facility.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "collection/msr_counters.h"
#include "host/files.h"
#include "host/kernel.h"
#include "plan/denial.h"
#include "plan/unwind.h"

/* --- what a request needs beyond its plan ----------------------------------------------------- */

/* perf_mmap() (kernel/events/core.c) refuses to map a page or a trace of an event that children inherit. */
static void alone(struct perf_event_attr *attr)
{
	attr->inherit = 0;
}

static void with_latency(struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;
}

static void with_branches(struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr->branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	if (attr->exclude_kernel)
		attr->branch_sample_type |= PERF_SAMPLE_BRANCH_USER;
}

/* --- ways to try ------------------------------------------------------------------------------ */

/* Whether the CPU has the event. Tables of CPUs differ in their events. */
static bool is_event(const char *text, struct host *host)
{
	struct events parsed = {0};
	struct refusal ignored = {0};
	bool is = !events_parse(text, host, &parsed, &ignored);

	events_release(&parsed);
	return is;
}

static const char *event_of(const struct facility *facility, struct host *host)
{
	if (host->events && facility->known && (!facility->core || is_event(facility->known, host)))
		return facility->known;
	if (!host_core_pmu(host) && facility->none)
		return facility->none;
	return facility->core ? facility->core : facility->known;
}

static struct trial trial_of(const struct facility *facility, struct host *host)
{
	struct trial trial = facility->trial;

	trial.events = event_of(facility, host);
	return trial;
}

static bool ran(const struct found *found)
{
	return found->count.running_ns != 0;
}

/* Works if the event counts more than 0. */
static int try_count(const struct facility *facility, struct host *host, struct finding *finding,
		     struct refusal *refusal)
{
	struct trial trial = trial_of(facility, host);
	struct found *found = &finding->found;

	if (trial_run(&trial, host, found, refusal))
		return -1;
	return ran(found) && found->count.value ? 0 : silent_denied(refusal, host, found->event, ran(found));
}

#define FIXED_CTR_CTRL                                                                                       \
	0x38d /* IA32_FIXED_CTR_CTRL: a fixed counter each 4 bits, the lower two switch it on */

/* Refuses if the firmware had counters of a kind (fixed or general ones) in use when Linux started; some
 * firmware manages power by them and goes on using them. */
static int firmware_counts(struct host *host, bool fixed, struct refusal *refusal)
{
	struct firmware_register reg;
	char counters[32] = "";
	size_t used = 0;

	if (!kernel_firmware_register(host, &reg) || fixed != (reg.address == FIXED_CTR_CTRL))
		return 0;
	for (int n = 0; fixed && n < 3; n++)
		if (reg.value >> 4 * n & 3)
			used += snprintf(counters + used, sizeof(counters) - used, "%s%d", used ? ", " : " ",
					 n);
	refuse(refusal, STATUS_REFUSED, "%s counters", fixed ? "fixed" : "general");
	because(refusal,
		"the machine's firmware had %s counters%s in use when Linux started (MSR 0x%x is 0x%llx, by "
		"the kernel's log): it may use them still, and their counts can't be trusted",
		fixed ? "fixed" : "general", counters, reg.address, (unsigned long long)reg.value);
	according(refusal, "kernel, check_hw_exists()");
	return instead(refusal, "in the firmware's setup, switch off what watches the processors' power and "
				"utilization");
}

static int try_general(const struct facility *facility, struct host *host, struct finding *finding,
		       struct refusal *refusal)
{
	return firmware_counts(host, false, refusal) ? -1 : try_count(facility, host, finding, refusal);
}

/* Works if the counter runs, even if the count is 0: on an idle or virtual machine there may be nothing to
 * count. */
static int try_run(const struct facility *facility, struct host *host, struct finding *finding,
		   struct refusal *refusal)
{
	struct trial trial = trial_of(facility, host);
	struct found *found = &finding->found;

	if (trial_run(&trial, host, found, refusal))
		return -1;
	return ran(found) ? 0 : silent_denied(refusal, host, found->event, false);
}

/* Works if samples reach the BPF program. */
static int try_samples(const struct facility *facility, struct host *host, struct finding *finding,
		       struct refusal *refusal)
{
	struct found *found = &finding->found;

	if (try_count(facility, host, finding, refusal))
		return -1;
	if (found->samples)
		return 0;
	refuse(refusal, STATUS_REFUSED, "event '%s'", found->event);
	because(refusal, "it counted %llu, and no sample reached the BPF program", found->count.value);
	return instead(refusal, "count it with nhmtap stat; see dmesg for problems of the PMU's interrupt");
}

/* Works if samples also come with branches. Not tried if the driver says that the CPU has no last branch
 * record. */
static int try_branches(const struct facility *facility, struct host *host, struct finding *finding,
			struct refusal *refusal)
{
	const struct pmu *pmu = host_core_pmu(host);

	if (pmu && pmu->max_precise >= 0 && pmu->branches <= 0) {
		refuse(refusal, STATUS_REFUSED, "the last branch record");
		return because(refusal,
			       "the kernel's driver has none on this CPU (no caps/branches of the "
			       "PMU '%s')",
			       pmu->name);
	}
	if (try_samples(facility, host, finding, refusal))
		return -1;
	if (finding->found.branches)
		return 0;
	refuse(refusal, STATUS_REFUSED, "event '%s'", finding->found.event);
	return because(refusal, "%llu samples came, and none with a branch", finding->found.samples);
}

static int try_load(const struct facility *facility, struct host *host, struct finding *finding,
		    struct refusal *refusal)
{
	return trial_load(host, refusal);
}

static int try_unwind(const struct facility *facility, struct host *host, struct finding *finding,
		      struct refusal *refusal)
{
	const char *why = unwind_forbidden(host);

	if (!why)
		return trial_unwind(host, refusal);
	refuse(refusal, STATUS_REFUSED, "walking stacks by tables");
	because(refusal, "%s", why);
	return instead(refusal, "install a newer kernel; -g --unwind fp goes by frame pointers");
}

static int try_page(const struct facility *facility, struct host *host, struct finding *finding,
		    struct shared_page *page, struct refusal *refusal)
{
	struct trial trial = trial_of(facility, host);
	struct found *found = &finding->found;

	if (trial_page(&trial, host, found, page, refusal))
		return -1;
	return page->placed ? 0 : silent_denied(refusal, host, found->event, false);
}

static int try_rdpmc(const struct facility *facility, struct host *host, struct finding *finding,
		     struct refusal *refusal)
{
	struct shared_page page;

	if (try_page(facility, host, finding, &page, refusal))
		return -1;
	if (page.rdpmc)
		return 0;
	refuse(refusal, STATUS_REFUSED, "the instruction RDPMC");
	because(refusal, "the kernel lets no user space execute it");
	return instead(refusal, "echo 1 > /sys/bus/event_source/devices/cpu/rdpmc");
}

#define RDPMC_FIXED (1U << 30) /* "Legal Index (ECX) Values" of the guide: fixed counters */

static int try_fixed(const struct facility *facility, struct host *host, struct finding *finding,
		     struct refusal *refusal)
{
	struct shared_page page;

	if (firmware_counts(host, true, refusal) || try_page(facility, host, finding, &page, refusal))
		return -1;
	if (page.number & RDPMC_FIXED)
		return 0;
	refuse(refusal, STATUS_REFUSED, "event '%s' on a fixed counter", finding->found.event);
	because(refusal, "the kernel put it on general counter %u: the fixed one is taken, or there is none",
		page.number);
	return instead(refusal, kernel_nmi_watchdog(host) ? "sysctl kernel.nmi_watchdog=0"
							  : "end other users of the PMU");
}

static int try_trace(const struct facility *facility, struct host *host, struct finding *finding,
		     struct refusal *refusal)
{
	struct trial trial = trial_of(facility, host);
	__u64 bytes;

	if (trial_trace(&trial, host, &finding->found, &bytes, refusal))
		return -1;
	finding->found.counted = false; /* the count of a trace event means nothing */
	return bytes ? 0 : silent_denied(refusal, host, finding->found.event, false);
}

static int try_cgroup(const struct facility *facility, struct host *host, struct finding *finding,
		      struct refusal *refusal)
{
	struct trial trial = trial_of(facility, host);

	return trial_cgroup(&trial, host, &finding->found, refusal);
}

#define FREEZE_ON_SMI "/sys/bus/event_source/devices/cpu/freeze_on_smi"

/* The kernel's driver creates the file if IA32_PERF_CAPABILITIES.SMM_FRZ is set. */
static int try_smm_freeze(const struct facility *facility, struct host *host, struct finding *finding,
			  struct refusal *refusal)
{
	char text[8];

	if (slurp(host, text, sizeof(text), FREEZE_ON_SMI) > 0)
		return 0;
	refuse(refusal, STATUS_REFUSED, FREEZE_ON_SMI);
	if (!host_core_pmu(host))
		return kernel_lacks_pmu(host, "cpu", refusal);
	because(refusal, "the kernel's driver does not offer it on this CPU");
	return instead(refusal, "count SMIs with msr/smi/");
}

/* Whether the CPU has counters that are used by --msr. */
static int has_units(const struct facility *facility, const struct host *host, const char *why,
		     struct refusal *refusal)
{
	if (host->units)
		return 0;
	refuse(refusal, STATUS_REFUSED, "%s", facility->title);
	return because(refusal, "%s", why);
}

static int try_registers(const struct facility *facility, struct host *host, struct finding *finding,
			 struct refusal *refusal)
{
	if (has_units(facility, host, "no counter of this CPU takes it", refusal))
		return -1;
	return msr_writable(host, refusal);
}

static int try_units(const struct facility *facility, struct host *host, struct finding *finding,
		     struct refusal *refusal)
{
	if (has_units(facility, host, "no table has any for this CPU", refusal))
		return -1;
	for (size_t i = 0; i < host->units->nr_units; i++) {
		const struct pmu *pmu = host_pmu(host, host->units->units[i].name);

		if (msr_unit_free(host, pmu->unit, &pmu->cpus, refusal))
			return -1;
	}
	return 0;
}

static int try_never(const struct facility *facility, struct host *host, struct finding *finding,
		     struct refusal *refusal)
{
	refuse(refusal, STATUS_REFUSED, "%s", facility->title);
	return because(refusal, "%s", facility->never);
}

/* --- the table -------------------------------------------------------------------------------- */

#define COUNT(k, c, n) .try = try_count, .known = (k), .core = (c), .none = (n)
#define SAMPLE(k, c, every)                                                                                  \
	.try = try_samples, .known = (k), .core = (c), .trial = {.sampled = true, .period = (every)}

const struct facility facilities[] = {
	{"software", "the kernel's own events and clocks", COUNT("cpu-clock", NULL, NULL)},
	{"stat", "counting the core's events", .try = try_general, .known = "INST_RETIRED.ANY_P",
	 .core = "instructions"},
	{"fixed", "fixed counters", .try = try_fixed, .known = "instructions", .trial = {.adjust = alone}},
	{"rdpmc", "reading counters by instruction", .try = try_rdpmc, .known = "instructions",
	 .trial = {.adjust = alone}},
	{"kernel", "the kernel's side", COUNT("cycles:k", "cycles:k", "cpu-clock:k")},
	{"system", "whole CPUs, all that are online", COUNT("cycles", "cycles", "cpu-clock"),
	 .trial = {.target = ON_ALL_CPUS}},
	{"anythread", "counting both threads of a core", COUNT("cpu/event=0x3c,any=1/", NULL, NULL),
	 .trial = {.target = ON_A_CPU}},
	{"sample", "samples when a counter overflows", SAMPLE("INST_RETIRED.ANY_P", "instructions", 100000)},
	{"bpf", "loading BPF programs and tables", .try = try_load},
	{"profile", "what nhmtap profile does by itself", SAMPLE(NULL, NULL, 0)},
	{"unwind", "stacks of programs without frame pointers", .try = try_unwind},
	{"precise", "precise samples (PEBS)", SAMPLE("cycles:pp", "cycles:pp", 100000)},
	{"mem", "load latency and data source", .try = try_samples, .core = "cpu/mem-loads/pp",
	 .offered = "mem-loads", .trial = {.sampled = true, .period = 50, .adjust = with_latency}},
	/* Any data request, any response. */
	{"offcore", "off-core responses",
	 COUNT("OFFCORE_RESPONSE.DEMAND_DATA_RD.ANY_RESPONSE",
	       "cpu/event=0xb7,umask=0x1,offcore_rsp=0x10001/", NULL),
	 .offered = "offcore_rsp"},
	{"branch", "last branch records (LBR)", .try = try_branches, .known = "BR_INST_RETIRED.ALL_BRANCHES",
	 .core = "branches",
	 .trial = {.sampled = true, .period = 10000, .branches = true, .adjust = with_branches}},
	{"bts", "branch trace store", .try = try_trace, .known = "intel_bts//u", .trial = {.adjust = alone}},
	{"cgroup", "counting a cgroup", .try = try_cgroup, .known = "cpu-clock",
	 .trial = {.target = ON_A_CPU}},
	{"uncore", "the uncore's counters", COUNT("uncore/clockticks/", NULL, NULL),
	 .trial = {.target = ON_A_CPU}},
	{"cstate", "time in sleep states", .try = try_run, .known = "cstate_core/c6-residency/",
	 .trial = {.target = ON_A_CPU}},
	{"msr", "the time stamp counter as an event", COUNT("msr/tsc/", NULL, NULL)},
	{"rapl", "energy", .try = try_run, .known = "power/energy-pkg/", .trial = {.target = ON_A_CPU}},
	{"smm_freeze", "counters stand still in SMM", .try = try_smm_freeze},
	{"registers", "writing model-specific registers (--msr)", .try = try_registers},
	{"units", "counters that only registers reach", .try = try_units},
	{"pin_control", "pins that show overflows (PC)", .try = try_never,
	 .never = "the kernel drops the bit without a word; --msr does not offer it, because a pin is no "
		  "count"},
	{"branch_messages", "branch messages on the bus (TR)", .try = try_never,
	 .never = "Linux never sets IA32_DEBUGCTL.TR; --msr does not offer it, because only a probe on the "
		  "bus reads the messages"},
	{"branch_step", "single-step on branches (BTF)", .try = try_never,
	 .never = "only ptrace offers it (PTRACE_SINGLEBLOCK); --msr can't, because each step is a trap that "
		  "the kernel takes"},
	{"uncore_interrupt", "samples by uncore counters", .try = try_never,
	 .never = "the kernel's uncore driver only counts; --msr can't, because an interrupt takes a handler "
		  "in the kernel"},
};
const size_t nr_facilities = ARRAY_SIZE(facilities);

const struct facility *facility_find(const char *name, size_t length)
{
	for (size_t i = 0; i < nr_facilities; i++)
		if (strlen(facilities[i].name) == length && !strncmp(facilities[i].name, name, length))
			return &facilities[i];
	return NULL;
}

/* The driver has the event or term on CPUs that can do it, so there is nothing to try on others. */
static int check_offer(const struct facility *facility, struct host *host, struct refusal *refusal)
{
	const struct pmu *pmu = host_core_pmu(host);

	if (!facility->offered || !pmu || pmu_has_event(pmu, facility->offered) ||
	    pmu_has_term(pmu, facility->offered))
		return 0;
	refuse(refusal, STATUS_REFUSED, "%s", facility->title);
	because(refusal, "the driver of this CPU's PMU has no '%s'", facility->offered);
	return host_may_be_emulated(host) ? instead(refusal, "use --machine for an emulated Nehalem") : -1;
}

void facility_try(const struct facility *facility, struct host *host, struct finding *finding)
{
	*finding = (struct finding){.facility = facility};
	for (size_t i = 0; host->events && i < host->events->nr_guide; i++)
		if (!strcmp(host->events->guide[i].facility, facility->name))
			finding->guide = host->events->guide[i].number;
	finding->works = !check_offer(facility, host, &finding->refusal) &&
			 !facility->try(facility, host, finding, &finding->refusal);
}

/* --- free counters ---------------------------------------------------------------------------- */

/* An event that only general counters count, because no fixed counter has its code. If CPUID says that the
 * branch event is missing, the kernel has no event `branches`, but accepts and places the raw code. */
static const char *general_event(struct host *host)
{
	struct trial trial = {.events = "branches"};
	struct refusal ignored = {0};
	struct found found;

	return trial_run(&trial, host, &found, &ignored) && ignored.error == ENOENT ? "r00c4" : "branches";
}

static const char *const fixed_events[] = {"instructions", "cycles", "ref-cycles"};

/* Whether a group of so many events of each kind runs. */
static bool group_runs(struct host *host, const char *event, int general, int fixed, struct refusal *refusal)
{
	char events[1024] = "{";
	size_t used = 1;
	struct trial trial = {.events = events};
	struct found found;

	for (int i = 0; i < general; i++)
		used += snprintf(events + used, sizeof(events) - used, "%s%s", i ? "," : "", event);
	for (int i = 0; i < fixed; i++)
		used += snprintf(events + used, sizeof(events) - used, ",%s", fixed_events[i]);
	snprintf(events + used, sizeof(events) - used, "}");
	if (trial_run(&trial, host, &found, refusal))
		return false;
	if (!ran(&found))
		silent_denied(refusal, host, events, false);
	return ran(&found);
}

void free_counters_count(struct free_counters *counters, struct host *host, int general, int fixed)
{
	const char *event = general_event(host);
	struct refusal refusal = {0};

	*counters = (struct free_counters){0};
	counters->general = general;
	while (counters->general && !group_runs(host, event, counters->general, 0, &refusal))
		counters->general--;
	counters->refusal = refusal;
	if (!counters->general)
		return;
	counters->fixed = fixed < 3 ? fixed : 3;
	while (counters->fixed && !group_runs(host, event, counters->general, counters->fixed, &refusal))
		counters->fixed--;
}
