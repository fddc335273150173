// SPDX-License-Identifier: GPL-2.0-only
#include "plan/rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "event/encoding.h"
#include "event/placement.h"
#include "metric/fit.h"
#include "plan/sides.h"
#include "tables/names.h"

/* What a rule checks: one core event of the plan. */
struct subject {
	const struct event *event;
	__u64 config, config1; /* as encoded by the kernel's driver: encoding_of() */
	const struct cpu_events *cpu;
	struct host *host;
	const struct events *all;
	const struct target *target;
};

/* Makes the event the subject. Returns false if it is not an event of the core's PMU. */
static bool make_subject(struct subject *s, const struct event *event)
{
	struct encoding encoding = {0};
	bool core = encoding_of(&event->attr, s->host, &encoding);

	s->event = event;
	s->config = encoding.config;
	s->config1 = encoding.config1;
	return core;
}

static bool selects(const struct subject *s, __u64 select)
{
	return (s->config & CONFIG_SELECT) == select;
}

static bool load_latency(const struct subject *s)
{
	return extra_register_of(s->cpu, s->config) == EXTRA_LOAD_LATENCY;
}

static bool offcore(const struct subject *s)
{
	return extra_register_of(s->cpu, s->config) == EXTRA_OFFCORE;
}

static int refuse_event(const struct subject *s, enum status status, struct refusal *refusal)
{
	refusal->error = 0;
	return refuse(refusal, status, "event '%s'", s->event->name);
}

/* --- bits that do nothing --------------------------------------------------------------------- */

static int pin_control(const struct subject *s, struct refusal *refusal)
{
	if (!(s->config & CONFIG_PC))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal, "pc (pin control, bit 19) would be dropped without a word: the kernel keeps "
			 "the pins for itself");
	according(refusal, "kernel, X86_RAW_EVENT_MASK");
	return instead(refusal, "leave pc out");
}

static int cmask_width(const struct subject *s, struct refusal *refusal)
{
	__u64 cmask = (s->config & CONFIG_CMASK) >> CONFIG_CMASK_SHIFT;

	if (!s->cpu->cmask_most || cmask <= s->cpu->cmask_most)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal, "cmask=%llu needs bits of the register above those of %u, which must be zero", cmask,
		s->cpu->cmask_most);
	according(refusal, "%s", s->cpu->cmask_source);
	return instead(refusal, "a cmask is at most %u; no core cycle has more than a few events",
		       s->cpu->cmask_most);
}

static int stray_config1(const struct subject *s, struct refusal *refusal)
{
	if (!s->config1 || offcore(s) || load_latency(s) || !s->cpu->nr_models)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal,
		"config1=0x%llx belongs to no register of this event, and the kernel would "
		"ignore it",
		s->config1);
	according(refusal, "kernel, the driver's extra_regs");
	if (!s->cpu->offcore)
		return instead(refusal, "leave it out");
	return instead(refusal,
		       "offcore_rsp goes with cpu/event=0x%llx,umask=0x%llx/, ldlat with cpu/mem-loads/",
		       s->cpu->offcore->registers[0].config & 0xff,
		       s->cpu->offcore->registers[0].config >> 8 & 0xff);
}

static int second_offcore_register(const struct subject *s, struct refusal *refusal)
{
	const struct known_offcore *known = s->cpu->offcore;

	if (!known || !known->ignored || !selects(s, known->ignored) || offcore(s))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal,
		"this CPU has one off-core register, with event 0x%llx; 0x%llx would count without "
		"any request or response",
		known->registers[0].config & 0xff, known->ignored & 0xff);
	according(refusal, "%s", known->ignored_source);
	return instead(refusal, "use the first event for all off-core responses, one after the other");
}

/* --- what the architecture may lack ------------------------------------------------------------- */

static int missing_event(const struct subject *s, struct refusal *refusal)
{
	const struct known_event *known = s->event->known;

	if (!known || !event_missing(s->host, known))
		return 0;
	refuse_event(s, STATUS_REFUSED, refusal);
	because(refusal,
		"the CPU says that it lacks this event (bit %d of CPUID.0AH:EBX): its code may count "
		"something else",
		known->architectural);
	according(refusal, "%s", known->source);
	return instead(refusal, "use another event; --force insists");
}

static int missing_generic(const struct subject *s, struct refusal *refusal)
{
	const struct generic_event *generic = generic_event_of(s->event->attr.type, s->event->attr.config);
	int bit = generic ? generic_missing(s->host, generic) : -1;

	if (bit < 0)
		return 0;
	refuse_event(s, STATUS_REFUSED, refusal);
	refusal->error = ENOENT;
	because(refusal,
		"the CPU says that it lacks this event (bit %d of CPUID.0AH:EBX), and then the kernel's "
		"driver does not have it",
		bit);
	according(refusal, "kernel, intel_arch_events_quirk()");
	return instead(refusal, "use another event, or its raw code rNNNN");
}

/* intel_pmu_check_event_constraints() refuses such events; core_pmu (version 1) would count event code 0. */
static int missing_fixed_counter(const struct subject *s, struct refusal *refusal)
{
	const struct known_kernel *kernel = s->cpu->kernel;
	const struct kernel_rule *rule;

	if (!kernel || s->event->attr.precise_ip)
		return 0;
	rule = kernel_rule_of(kernel->placed, kernel->nr_placed, s->config);
	if (!rule || rule->counters || rule->fixed_counter < 0 || has_fixed_counter(s->cpu, rule))
		return 0;
	refuse_event(s, STATUS_REFUSED, refusal);
	because(refusal, "only fixed counter %d counts it, and this CPU has %u", rule->fixed_counter,
		s->cpu->fixed_counters);
	according(refusal, "%s", kernel->source);
	return instead(refusal, "count cycles; the time itself is task-clock's");
}

static int any_thread_version(const struct subject *s, struct refusal *refusal)
{
	if (!(s->config & CONFIG_ANY) || !s->cpu->perfmon || s->cpu->perfmon >= 3)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	refusal->error = EINVAL;
	because(refusal,
		"any (both threads of a core) came with architectural perfmon version 3, and this CPU "
		"has version %u",
		s->cpu->perfmon);
	according(refusal, "kernel, intel_pmu_hw_config()");
	return instead(refusal, "leave out any, and count both threads");
}

/* --- off-core responses ----------------------------------------------------------------------- */

static int offcore_width(const struct subject *s, struct refusal *refusal)
{
	const struct known_offcore *known = s->cpu->offcore;
	__u64 requests, responses;
	int highest;

	if (!offcore(s))
		return 0;
	requests = offcore_requests(known);
	responses = offcore_responses(known);
	if (!(s->config1 & ~(requests | responses)))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	highest = 63 - __builtin_clzll(requests | responses);
	if (s->config1 >> highest > 1)
		because(refusal, "offcore_rsp=0x%llx has bits beyond %d", s->config1, highest);
	else
		because(refusal, "offcore_rsp=0x%llx has bits that the register has not", s->config1);
	according(refusal, "%s", known->source);
	return instead(refusal, "requests are the bits of 0x%llx, responses those of 0x%llx", requests,
		       responses);
}

/* The part that a response lacks, or NULL. If responses consist of suppliers and snoops, one of each is
 * required, or a bit that is neither. */
static const char *missing_of_response(const struct known_offcore *known, __u64 value)
{
	__u64 suppliers = offcore_bits_of_kind(known, OFFCORE_SUPPLIER);
	__u64 snoops = offcore_bits_of_kind(known, OFFCORE_SNOOP), responses = offcore_responses(known);

	if (!(value & responses))
		return "response";
	if (!snoops || value & responses & ~(suppliers | snoops))
		return NULL;
	if (!(value & suppliers))
		return "supplier";
	return value & snoops ? NULL : "snoop";
}

static int offcore_counts_nothing(const struct subject *s, struct refusal *refusal)
{
	const struct known_offcore *known = s->cpu->offcore;
	const char *missing;

	if (!offcore(s))
		return 0;
	missing = s->config1 & offcore_requests(known) ? missing_of_response(known, s->config1) : "request";
	if (!missing)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal, "offcore_rsp=0x%llx has no %s bit, so it counts nothing", s->config1, missing);
	according(refusal, "%s", known->source);
	return instead(refusal, "name all, as in %s:%s:%s; --force insists", known->registers[0].name,
		       known->requests[0].name, known->responses[known->nr_responses - 1].name);
}

static int offcore_reserved(const struct subject *s, struct refusal *refusal)
{
	__u64 responses;

	if (!offcore(s))
		return 0;
	responses = s->config1 & offcore_responses(s->cpu->offcore);
	if (responses & ~s->cpu->offcore->reserved)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal, "its only response bits, 0x%llx, are reserved on this CPU", responses);
	according(refusal, "%s", s->cpu->offcore->source);
	return instead(refusal, "choose another response; --force insists");
}

/* --- load latency ----------------------------------------------------------------------------- */

static int latency_range(const struct subject *s, struct refusal *refusal)
{
	const __u32 least = s->cpu->latency_least, most = s->cpu->latency_most;
	__u64 threshold = s->config1;
	bool the_tables = s->event->known && s->event->known->config1 == threshold;

	if (!load_latency(s) || the_tables || (threshold >= least && threshold <= most))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal,
		threshold ? "ldlat=%llu is outside of %u to %u core cycles"
			  : "its threshold is missing (ldlat=%llu; %u to %u core cycles)",
		threshold, least, most);
	according(refusal, "%s", s->cpu->latency_source);
	return instead(refusal, "write cpu/mem-loads,ldlat=%d/; --force insists", 30);
}

static int latency_flags(const struct subject *s, struct refusal *refusal)
{
	if (!load_latency(s) || !(s->config & (CONFIG_CMASK | CONFIG_INV)))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal, "cmask and inv are undefined with load latency");
	according(refusal, "%s", s->cpu->latency_source);
	return instead(refusal, "leave them out");
}

/* --- precise sampling ------------------------------------------------------------------------- */

static int precise_without_period(const struct subject *s, struct refusal *refusal)
{
	if (!s->event->attr.precise_ip || s->event->attr.sample_period)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	refusal->error = EINVAL;
	because(refusal, "precise is about samples, and counting takes none");
	according(refusal, "kernel, intel_pmu_hw_config()");
	return instead(refusal, "leave out the modifier p, or use nhmtap profile");
}

static int precise_any_thread(const struct subject *s, struct refusal *refusal)
{
	if (!s->event->attr.precise_ip || !(s->config & CONFIG_ANY))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	refusal->error = EINVAL;
	because(refusal, "any (both threads of a core) can't be sampled precisely");
	according(refusal, "kernel, intel_pebs_constraints()");
	return instead(refusal, "leave out any, or the modifier p");
}

static int precise_by_kernel(const struct subject *s, struct refusal *refusal)
{
	const struct known_kernel *kernel = s->cpu->kernel;

	if (!s->event->attr.precise_ip || !kernel || !kernel->nr_precise)
		return 0;
	if (kernel_rule_of(kernel->precise, kernel->nr_precise, s->config))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	refusal->error = EINVAL;
	because(refusal, s->event->known && s->event->known->precise
				 ? "the CPU could record it precisely, but the kernel's driver does not"
				 : "it can't be recorded precisely");
	according(refusal, "%s", kernel->source);
	return instead(refusal, "leave out the modifier p; nhmtap list --precise shows those that can");
}

/* Some drivers accept any event as precise, by a rule without a code. */
static int precise_unrecorded(const struct subject *s, struct refusal *refusal)
{
	const struct known_kernel *kernel = s->cpu->kernel;
	const struct known_event *known = s->event->known;
	const struct kernel_rule *rule;

	if (!s->event->attr.precise_ip || !kernel || (!known && !offcore(s)) || (known && known->precise))
		return 0;
	rule = kernel_rule_of(kernel->precise, kernel->nr_precise, s->config);
	if (!rule || rule->mask & CONFIG_EVENT)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal, "the kernel takes any event as precise, but the CPU can't record this one: it would "
			 "count, and no sample would come");
	according(refusal, "%s", known ? known->source : s->cpu->offcore->source);
	return instead(refusal, "leave out the modifier p; --force insists");
}

/* --- sides ------------------------------------------------------------------------------------ */

/* Without the user's word for it (privilege_given), the kernel's side is left out for want of privileges;
 * then the count is not refused, but says that it can't be told: sides_settle(). */
static int other_side(const struct subject *s, struct refusal *refusal)
{
	/* A side that is written excludes the others. */
	const char *modifier = s->event->attr.exclude_user ? "h" : "u";
	struct sides sides;

	if (!s->event->privilege_given || !s->event->attr.exclude_kernel)
		return 0;
	sides_of(s->event, s->host, &sides);
	if (!sides_missed(s->event, &sides))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal, "it %s; on the user's side it would count nothing", sides.why);
	according(refusal, "kernel, %s", sides.source);
	if (host_may_count_kernel(s->host))
		return instead(refusal, "leave out the modifier %s, or write k; --force insists", modifier);
	return instead(refusal, "leave out the modifier %s, and %s", modifier, sides_remedy(s->host));
}

/* The driver has no means to leave a side out. */
static int without_sides(const struct subject *s, struct refusal *refusal)
{
	if (!s->event->sideless || !sides_any_excluded(s->event))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	refusal->error = EINVAL;
	because(refusal, "its counter counts whoever is the cause, on all sides together: the kernel takes "
			 "none of u, k, h, G, H and I for it");
	according(refusal, "kernel, PERF_PMU_CAP_NO_EXCLUDE");
	return instead(refusal, "leave out the modifiers");
}

static int guests_alone(const struct subject *s, struct refusal *refusal)
{
	if (!sides_of_guests_ignored(s->event))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal, "G asks for guests alone, and the kernel counts this event itself, on the host: it "
			 "would ignore G and count what happens here");
	according(refusal, "kernel, perf_exclude_event()");
	return instead(refusal, "leave out the modifier G; --force insists");
}

static int no_side(const struct subject *s, struct refusal *refusal)
{
	if (!s->event->privilege_given || !sides_all_excluded(s->event, s->host))
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal, "h is a hypervisor's side, which an x86 CPU does not tell apart; without u and k it "
			 "would count nothing");
	according(refusal, "kernel, x86_pmu_hw_config() and perf_exclude_event()");
	return instead(refusal, "write u for the user's side, k for the kernel's, or both; --force insists");
}

/* --- periods and rights ----------------------------------------------------------------------- */

static int sampled_tracepoint(const struct subject *s, struct refusal *refusal)
{
	if (s->event->attr.type != PERF_TYPE_TRACEPOINT || !s->event->attr.sample_period)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	refusal->error = EINVAL;
	because(refusal,
		"samples are taken by a BPF program of events, which the kernel attaches to none of a "
		"tracepoint");
	according(refusal, "kernel, perf_event_set_bpf_prog()");
	return instead(refusal, "count it with nhmtap stat, or sample it with perf record");
}

static int short_period(const struct subject *s, struct refusal *refusal)
{
	const struct perf_event_attr *attr = &s->event->attr;
	__u64 least = s->cpu->kernel ? s->cpu->kernel->lowest_period : 0;

	if (attr->freq || !attr->sample_period || attr->sample_period >= least)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	refusal->error = EINVAL;
	because(refusal, "a period of %llu is below %llu, the least that the kernel takes on this CPU",
		attr->sample_period, least);
	according(refusal, "%s", s->cpu->kernel->source);
	return instead(refusal, "ask for -c %llu or more", least);
}

static int any_thread_rights(const struct subject *s, struct refusal *refusal)
{
	if (!(s->config & CONFIG_ANY) || s->host->perf_event_paranoid <= 0 ||
	    host_capable(s->host, CAP_PERFMON))
		return 0;
	refuse_event(s, STATUS_REFUSED, refusal);
	refusal->error = EACCES;
	because(refusal,
		"any counts the core's other thread too, which requires the right to measure whole CPUs; "
		"kernel.perf_event_paranoid is %d",
		s->host->perf_event_paranoid);
	according(refusal, "kernel, intel_pmu_hw_config()");
	return instead(refusal,
		       "leave out any, or: sysctl kernel.perf_event_paranoid=0, or give CAP_PERFMON");
}

/* --- several events --------------------------------------------------------------------------- */

/* Finds the events of the same group, from `first` up to, but not including, `end`. */
static void group_of(const struct subject *s, const struct event **first, const struct event **end)
{
	const struct event *all = s->all->list;

	*first = *end = s->event;
	if (s->event->group < 0) {
		++*end;
		return;
	}
	while (*first > all && (*first)[-1].group == s->event->group)
		--*first;
	while (*end < all + s->all->nr && (*end)->group == s->event->group)
		++*end;
}

static void print_placement(const struct event *events, const int *counters, int nr, char *text, size_t size)
{
	for (int i = 0, used = 0; i < nr && (size_t)used < size; i++) {
		if (counters[i] == PLACED_NOWHERE)
			continue;
		used += snprintf(text + used, size - used, "%s%s on %s %d", used ? ", " : "", events[i].name,
				 counters[i] >= PLACED_FIXED ? "fixed" : "general",
				 counters[i] % PLACED_FIXED);
	}
}

static int group_fits(const struct subject *s, struct refusal *refusal)
{
	const struct event *first, *end;
	int counters[PLACEMENT_MOST], without;
	char placed[400] = "";

	group_of(s, &first, &end);
	if (s->event != first) /* check each group once */
		return 0;
	without = placement_find(s->host, first, end - first, 0, counters);
	if (without < 0)
		return 0;
	refuse(refusal, STATUS_USAGE, "the group of '%s'", first->name);
	placement_find(s->host, first, without, 0, counters);
	print_placement(first, counters, without, placed, sizeof(placed));
	because(refusal,
		"its events can't be counted at the same time: %.380s, and no counter is left for %s", placed,
		first[without].name);
	according(refusal, "kernel, the CPU's event constraints");
	return instead(refusal, "split it; %u general and %u fixed counters can count at once",
		       general_counters_of(s->host), s->cpu->fixed_counters);
}

/* The kernel checks a group against all counters. It accepts a group that never fits beside an event that is
 * pinned to a counter, such as the NMI watchdog's. */
static int group_beside_watchdog(const struct subject *s, struct refusal *refusal)
{
	const struct event *first, *end;
	int counters[PLACEMENT_MOST], without;

	group_of(s, &first, &end);
	if (s->event != first || !counters_held(s->host))
		return 0;
	without = placement_find(s->host, first, end - first, counters_held(s->host), counters);
	if (without < 0)
		return 0;
	refuse(refusal, STATUS_REFUSED, "the group of '%s'", first->name);
	because(refusal,
		"it would never run: the kernel's NMI watchdog counts cycles on fixed 1, and "
		"beside it no counter is left for %s",
		first[without].name);
	according(refusal, "kernel, hardlockup_detector_event_create()");
	return instead(refusal, "take %s out of the group, or: sysctl kernel.nmi_watchdog=0; --force insists",
		       first[without].name);
}

/* What LBR_SELECT is set from. A filter without sides gets those of the event (perf_copy_attr()). Precise
 * samples of level 2 are corrected by the last branch, which may be of any kind (x86_pmu_hw_config()). */
static __u64 branch_filter(const struct subject *s)
{
	const struct perf_event_attr *attr = &s->event->attr;
	__u64 filter = attr->branch_sample_type ? attr->branch_sample_type : PERF_SAMPLE_BRANCH_ANY;

	if (filter & PERF_SAMPLE_BRANCH_PLM_ALL)
		return filter;
	return filter | (attr->exclude_user ? 0 : PERF_SAMPLE_BRANCH_USER) |
	       (attr->exclude_kernel ? 0 : PERF_SAMPLE_BRANCH_KERNEL);
}

static bool takes_branches(const struct subject *s)
{
	return s->cpu->nr_branches && (s->event->attr.branch_sample_type || s->event->attr.precise_ip > 1);
}

static __u64 config1(const struct subject *s)
{
	return s->config1;
}

static size_t one(const struct subject *s)
{
	return 1;
}

static size_t offcore_registers(const struct subject *s)
{
	return extra_registers_of(s->cpu, EXTRA_OFFCORE);
}

/* Registers that the threads of a core share, with their number per core: the driver's
 * intel_shared_reg_get_constraints(). */
static const struct shared_register {
	const char *name;
	bool (*used)(const struct subject *s);
	__u64 (*value)(const struct subject *s);
	size_t (*number)(const struct subject *s);
} shared_registers[] = {
	{"load-latency threshold", load_latency, config1, one},
	{"off-core register", offcore, config1, offcore_registers},
	{"branch filter", takes_branches, branch_filter, one},
};

/* Whether the events from `first` up to this one already use all registers of this kind for other values.
 * Sets `holder` to the last of those events. */
static bool all_held(const struct subject *s, const struct shared_register *reg, const struct event *first,
		     const struct event **holder)
{
	__u64 values[EXTRA_VALUES];
	size_t nr = 0, number = reg->number(s);

	for (const struct event *other = first; other < s->event && reg->used(s); other++) {
		struct subject that = *s;
		size_t v = 0;

		if (!make_subject(&that, other) || !reg->used(&that))
			continue;
		if (reg->value(&that) == reg->value(s))
			return false;
		while (v < nr && values[v] != reg->value(&that))
			v++;
		if (v == nr && nr < number)
			values[nr++] = reg->value(&that);
		*holder = other;
	}
	return nr == number;
}

/* The register that can't hold this event's value, because the events from `first` up to it use all of them
 * for other values; NULL if there is none. */
static const struct shared_register *contested(const struct subject *s, const struct event *first,
					       const struct event **holder)
{
	for (size_t i = 0; i < ARRAY_SIZE(shared_registers); i++)
		if (all_held(s, &shared_registers[i], first, holder))
			return &shared_registers[i];
	return NULL;
}

size_t rules_register(const struct event *event, const char *name, struct host *host, __u64 *value)
{
	struct subject subject = {.cpu = host->events, .host = host};

	if (!host->events || !make_subject(&subject, event))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(shared_registers); i++) {
		const struct shared_register *reg = &shared_registers[i];

		if (strcmp(reg->name, name) || !reg->used(&subject))
			continue;
		*value = reg->value(&subject);
		return reg->number(&subject);
	}
	return 0;
}

static const char *number_of(const struct subject *s, const struct shared_register *reg)
{
	return reg->number(s) == 1 ? "one" : "no more than two";
}

static int group_shares_register(const struct subject *s, struct refusal *refusal)
{
	const struct event *first, *end, *holder = NULL;
	const struct shared_register *reg;

	group_of(s, &first, &end);
	reg = contested(s, first, &holder);
	if (!reg)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	refusal->error = EINVAL;
	because(refusal, "the group already has '%s', and there %s %s %s%s", holder->name,
		reg->number(s) == 1 ? "is" : "are", number_of(s, reg), reg->name,
		reg->number(s) == 1 ? "" : "s");
	according(refusal, "kernel, intel_shared_reg_get_constraints()");
	return instead(refusal, "take them apart, {…},{…}: they are then counted in turns");
}

/* Whether the target includes both threads of any core. */
static bool covers_siblings(const struct subject *s)
{
	for (int cpu = cpus_next(&s->target->cpus, 0); s->target->cpus_given && cpu >= 0;
	     cpu = cpus_next(&s->target->cpus, cpu + 1))
		if (cpus_has(&s->target->cpus, host_sibling(s->host, cpu)))
			return true;
	return false;
}

static int siblings_share_register(const struct subject *s, struct refusal *refusal)
{
	const struct event *holder = NULL;
	const struct shared_register *reg;

	reg = covers_siblings(s) ? contested(s, s->all->list, &holder) : NULL;
	if (!reg)
		return 0;
	refuse_event(s, STATUS_USAGE, refusal);
	because(refusal,
		"'%s' wants another value in the %s, of which each core has %s for both "
		"of its threads: on one of them it would never run",
		holder->name, reg->name, number_of(s, reg));
	according(refusal, "kernel, intel_shared_reg_get_constraints()");
	return instead(refusal, "measure them one after the other, or one thread of each core "
				"with -C; --force insists");
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct rule {
	int (*check)(const struct subject *s, struct refusal *refusal);
	bool yields;	/* --force skips it: the kernel would accept the request, and it does no harm */
	bool of_groups; /* also checks software events, which may be the first of a group */
	bool of_all;	/* checks all events, on CPUs without a table as well */
} rules[] = {
	{.check = other_side, .yields = true, .of_all = true},
	{.check = no_side, .yields = true, .of_all = true},
	{.check = without_sides, .of_all = true},
	{.check = guests_alone, .yields = true, .of_all = true},
	{.check = sampled_tracepoint, .of_all = true},
	{.check = pin_control},
	{.check = cmask_width},
	{.check = second_offcore_register, .yields = true},
	{.check = stray_config1},
	{.check = offcore_width},
	{.check = offcore_counts_nothing, .yields = true},
	{.check = offcore_reserved, .yields = true},
	{.check = latency_flags},
	{.check = latency_range, .yields = true},
	{.check = precise_any_thread},
	{.check = precise_by_kernel},
	{.check = precise_unrecorded, .yields = true},
	{.check = precise_without_period},
	{.check = short_period},
	{.check = missing_event, .yields = true},
	{.check = missing_generic},
	{.check = missing_fixed_counter},
	{.check = any_thread_version},
	{.check = any_thread_rights},
	{.check = group_shares_register},
	{.check = group_fits, .of_groups = true},
	{.check = group_beside_watchdog, .yields = true, .of_groups = true},
	{.check = siblings_share_register, .yields = true},
};

/* Whether a rule is about an event: of the core's PMU or not, on a CPU with a table or without. */
static bool is_of_event(const struct rule *rule, const struct cpu_events *cpu, bool core)
{
	return rule->of_all || (cpu && (core || rule->of_groups));
}

int rules_check(const struct events *events, const struct target *target, struct host *host, bool force,
		struct refusal *refusal)
{
	struct subject subject = {.cpu = host->events, .host = host, .all = events, .target = target};

	for (size_t i = 0; i < events->nr; i++) {
		bool core = subject.cpu && make_subject(&subject, &events->list[i]);

		subject.event = &events->list[i];
		for (size_t r = 0; r < ARRAY_SIZE(rules); r++)
			if (is_of_event(&rules[r], subject.cpu, core) && !(force && rules[r].yields) &&
			    rules[r].check(&subject, refusal))
				return -1;
	}
	return 0;
}
