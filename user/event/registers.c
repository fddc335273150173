// SPDX-License-Identifier: GPL-2.0-only
#include "event/registers.h"

#include <string.h>

#include "base/array.h"
#include "event/branch_filter.h"

/* Bits of IA32_PERFEVTSELx that perf_event_attr has other members for (guide, Table 10). */
#define USR (1ULL << 16)
#define OS  (1ULL << 17)
#define INT (1ULL << 20)
#define EN  (1ULL << 22)
/* The bits that the driver copies from config: asm/perf_event.h. */
#define X86_RAW_EVENT_MASK (CONFIG_SELECT | CONFIG_EDGE | CONFIG_INV | CONFIG_CMASK)

/* --- what counts ------------------------------------------------------------------------------ */

/* hw.config of x86_pmu_hw_config(), events/core.c, and intel_pmu_hw_config(), intel/core.c, before a
 * counter is chosen. */
static __u64 hardware_config(const struct perf_event_attr *attr, const struct cpu_events *cpu,
			     const struct encoding *encoding)
{
	__u64 config = encoding->config & X86_RAW_EVENT_MASK;

	/* intel_pebs_aliases_core2(), intel_pebs_aliases_snb(): cycles have no PEBS. "Fewer than 16
	 * instructions (or micro-ops) retired" has, and is true in every cycle. */
	if (attr->precise_ip && config == 0x3c && cpu->kernel->precise_cycles)
		config = cpu->kernel->precise_cycles;
	if (!attr->exclude_user)
		config |= USR;
	if (!attr->exclude_kernel)
		config |= OS;
	/* intel_pmu_pebs_enable(), intel/ds.c, clears INT: the PEBS buffer causes the interrupt. */
	if (!attr->precise_ip)
		config |= INT;
	if (attr->type == PERF_TYPE_RAW)
		config |= attr->config & CONFIG_ANY;
	return config | EN;
}

/* --- where ------------------------------------------------------------------------------------ */

/* intel_get_event_constraints(): PEBS first, then the others. */
static void place_event(const struct perf_event_attr *attr, const struct cpu_events *cpu,
			unsigned int general, __u64 config, struct registers *registers)
{
	const struct known_kernel *kernel = cpu->kernel;
	const struct kernel_rule *rule;

	registers->counters = (1U << general) - 1;
	registers->fixed_counter = -1;
	if (attr->precise_ip) {
		rule = kernel_rule_of(kernel->precise, kernel->nr_precise, config);
		registers->refused = kernel->nr_precise && !rule;
	} else {
		rule = kernel_rule_of(kernel->placed, kernel->nr_placed, config);
	}
	if (!rule)
		return;
	registers->counters = rule->counters & registers->counters;
	registers->fixed_counter = has_fixed_counter(cpu, rule) ? rule->fixed_counter : -1;
}

/* --- the guide's fields ----------------------------------------------------------------------- */

/* What a field means for value 0 and for other values. A field of two bits may have four meanings. */
struct field_row {
	const char *name;
	int low, high;
	const char *means[4];
};

static const struct field_row perfevtsel[] = {
	{"EVTSEL", 0, 7, {"the event", "the event"}},
	{"EVTMSK", 8, 15, {"no condition of the event selected", "conditions of the event"}},
	{"USR", 16, 16, {"not at privilege levels 1 to 3", "counts at privilege levels 1 to 3"}},
	{"OS", 17, 17, {"not at privilege level 0", "counts at privilege level 0"}},
	{"E", 18, 18, {"counts while the condition holds", "counts when it begins to hold"}},
	{"INT", 20, 20, {"no interrupt of its own on overflow", "interrupts on overflow"}},
	{"AnyThr", 21, 21, {"this logical processor", "every logical processor of the core"}},
	{"EN", 22, 22, {"off", "on, as far as IA32_PERF_GLOBAL_CTRL lets it"}},
	{"INV", 23, 23, {"CMASK is met at or above it", "CMASK is met below it"}},
	{"CMASK", 24, 31, {"adds occurrences", "adds 1 in each cycle whose occurrences meet it"}},
};

#define CTL_FC(n)                                                                                            \
	{"CTL_FC" #n,                                                                                        \
	 4 * n,                                                                                              \
	 4 * n + 1,                                                                                          \
	 {"off", "counts at privilege level 0", "counts at privilege levels 1 to 3",                         \
	  "counts at every privilege level"}},                                                               \
		{"AnyThr_FC" #n,                                                                             \
		 4 * n + 2,                                                                                  \
		 4 * n + 2,                                                                                  \
		 {"this logical processor", "every logical processor of the core"}},                         \
	{                                                                                                    \
		"INT_FC" #n, 4 * n + 3, 4 * n + 3,                                                           \
		{                                                                                            \
			"no interrupt", "interrupts on overflow"                                             \
		}                                                                                            \
	}
static const struct field_row fixed_ctr_ctrl[] = {CTL_FC(0), CTL_FC(1), CTL_FC(2)};

#define ENABLE(counter, bit)                                                                                 \
	{                                                                                                    \
		"EN_" counter, bit, bit,                                                                     \
		{                                                                                            \
			"off", "on, where it is programmed"                                                  \
		}                                                                                            \
	}
static const struct field_row global_ctrl[] = {
	ENABLE("PC0", 0),  ENABLE("PC1", 1),  ENABLE("PC2", 2),	 ENABLE("PC3", 3),
	ENABLE("PC4", 4),  ENABLE("PC5", 5),  ENABLE("PC6", 6),	 ENABLE("PC7", 7),
	ENABLE("FC0", 32), ENABLE("FC1", 33), ENABLE("FC2", 34),
};

static const struct field_row pebs_enable[] = {
	{"PEBS_EN_CTRx", 0, 0, {"", "writes a PEBS record when the event follows an overflow"}},
	{"LL_EN_CTRx", 32, 32, {"", "the record has latency, address and data source of a load"}},
};

static const struct field_row ld_lat_threshold[] = {
	{"LD_LAT_THRESH", 0, 15, {"below the least documented, 3", "core cycles; slower loads count"}},
};

#define SUPPRESS(name, bit, branches)                                                                        \
	{                                                                                                    \
		name, bit, bit,                                                                              \
		{                                                                                            \
			"records " branches, "leaves out " branches                                          \
		}                                                                                            \
	}
static const struct field_row lbr_select[] = {
	SUPPRESS("CPL_EQ_0", 0, "branches in ring 0"),
	SUPPRESS("CPL_NEQ_0", 1, "branches in rings 1 to 3"),
	SUPPRESS("JCC", 2, "conditional branches"),
	SUPPRESS("NEAR_REL_CALL", 3, "near relative calls"),
	SUPPRESS("NEAR_IND_CALL", 4, "near indirect calls"),
	SUPPRESS("NEAR_RET", 5, "near returns"),
	SUPPRESS("NEAR_IND_JMP", 6, "near unconditional indirect jumps"),
	SUPPRESS("NEAR_REL_JMP", 7, "near unconditional relative jumps"),
	SUPPRESS("FAR_BRANCH", 8, "far branches"),
};

static const struct field_row debugctl[] = {
	{"LBR", 0, 0, {"", "records branches in the LBR stack"}},
	{"FRZ_LBRS_ON_PMI", 11, 11, {"", "an interrupt of the PMU freezes the LBR stack"}},
};

static __u64 field_mask(const struct field_row *row)
{
	return (~0ULL >> (63 - row->high)) & ~0ULL << row->low;
}

static void add_field(struct register_value *reg, const struct field_row *row)
{
	__u64 value = (reg->value & field_mask(row)) >> row->low;
	size_t meaning = row->high - row->low == 1 ? value : value != 0;

	reg->fields[reg->nr_fields++] = (struct register_field){
		.name = row->name,
		.meaning = row->means[meaning],
		.low = row->low,
		.high = row->high,
		.value = value,
	};
}

enum {
	PERFEVTSEL,
	FIXED_CTR_CTRL,
	GLOBAL_CTRL,
	PEBS_ENABLE,
	LD_LAT_THRESHOLD,
	LBR_SELECT,
	DEBUGCTL,
	OFFCORE_RSP, /* two of them */
};

#define FIELDS(rows) rows, ARRAY_SIZE(rows)
/* Addresses: the guide's Table 26. */
static const struct register_row {
	const char *name;
	__u32 msr;
	int counter;
	const struct field_row *fields; /* OFFCORE_RSP's are in the CPU's table */
	size_t nr_fields;
} rows[] = {
	[PERFEVTSEL] = {"IA32_PERFEVTSELx", 0x186, COUNTER_IN_ADDRESS, FIELDS(perfevtsel)},
	[FIXED_CTR_CTRL] = {"IA32_FIXED_CTR_CTRL", 0x38d, COUNTER_NOWHERE, FIELDS(fixed_ctr_ctrl)},
	[GLOBAL_CTRL] = {"IA32_PERF_GLOBAL_CTRL", 0x38f, COUNTER_NOWHERE, FIELDS(global_ctrl)},
	[PEBS_ENABLE] = {"IA32_PEBS_ENABLE", 0x3f1, COUNTER_IN_BITS, FIELDS(pebs_enable)},
	[LD_LAT_THRESHOLD] = {"PEBS_LD_LAT_THRESHOLD", 0x3f6, COUNTER_NOWHERE, FIELDS(ld_lat_threshold)},
	[LBR_SELECT] = {"LBR_SELECT", 0x1c8, COUNTER_NOWHERE, FIELDS(lbr_select)},
	[DEBUGCTL] = {"IA32_DEBUGCTL", 0x1d9, COUNTER_NOWHERE, FIELDS(debugctl)},
	[OFFCORE_RSP] = {"OFFCORE_RSP_0", 0x1a6, COUNTER_NOWHERE, NULL, 0},
	[OFFCORE_RSP + 1] = {"OFFCORE_RSP_1", 0x1a7, COUNTER_NOWHERE, NULL, 0},
};

/* Adds a register, with those of its fields that are within the mask. */
static struct register_value *add_register(struct registers *registers, int which, __u64 value, __u64 mask)
{
	struct register_value *reg = &registers->list[registers->nr++];
	const struct register_row *row = &rows[which];

	*reg = (struct register_value){
		.name = row->name, .msr = row->msr, .counter = row->counter, .value = value, .mask = mask};
	for (size_t i = 0; i < row->nr_fields; i++)
		if (!(field_mask(&row->fields[i]) & ~mask))
			add_field(reg, &row->fields[i]);
	return reg;
}

/* --- register by register --------------------------------------------------------------------- */

/* __x86_pmu_enable_event(), events/perf_event.h; intel_pmu_enable_fixed(), intel/core.c. */
static void add_selection(struct registers *registers, __u64 config)
{
	int shift = 4 * registers->fixed_counter;
	__u64 value = 0;

	if (registers->fixed_counter < 0) {
		add_register(registers, PERFEVTSEL, config, ~0ULL);
		return;
	}
	value |= config & OS ? 1 : 0;
	value |= config & USR ? 2 : 0;
	value |= config & CONFIG_ANY ? 4 : 0;
	value |= config & INT ? 8 : 0;
	add_register(registers, FIXED_CTR_CTRL, value << shift, 0xfULL << shift);
}

/* __intel_pmu_enable_all(), intel/core.c: enables all counters except those of events with exclude_host,
 * which are enabled only while a guest runs. */
static void add_global_control(const struct perf_event_attr *attr, const struct cpu_events *cpu,
			       unsigned int general, struct registers *registers)
{
	__u64 all = ((1ULL << cpu->fixed_counters) - 1) << 32 | ((1ULL << general) - 1);
	struct register_value *reg;
	size_t kept = 0;
	__u64 known = ~0ULL;

	if (attr->exclude_host)
		known = registers->fixed_counter < 0 ? ~(__u64)registers->counters
						     : ~(1ULL << (32 + registers->fixed_counter));
	reg = add_register(registers, GLOBAL_CTRL, all & known, known);
	/* Only fields of counters that the CPU has are kept. */
	for (size_t i = 0; i < reg->nr_fields; i++)
		if (all >> reg->fields[i].low & 1)
			reg->fields[kept++] = reg->fields[i];
	reg->nr_fields = kept;
}

/* Only one counter can record stores, and a separate bit without a counter number enables it. */
static void add_store(struct registers *registers)
{
	static const struct field_row stores = {
		"PS_EN", 63, 63, {"", "the record has address and status of a store"}};
	int counter = __builtin_ctz(registers->counters);
	struct field_row records = pebs_enable[0];
	struct register_value *reg;
	__u64 value = 1ULL << counter | 1ULL << 63;

	records.low = records.high = counter;
	reg = add_register(registers, PEBS_ENABLE, value, value);
	reg->counter = COUNTER_NOWHERE;
	reg->nr_fields = 0;
	add_field(reg, &records);
	add_field(reg, &stores);
}

/* intel_pmu_pebs_enable(), intel/ds.c. */
static void add_pebs(const struct cpu_events *cpu, const struct encoding *encoding,
		     struct registers *registers)
{
	__u64 value = 1;

	if (is_load_latency(cpu, encoding->config))
		value |= 1ULL << 32;
	if (is_precise_store(cpu, encoding->config)) {
		add_store(registers);
		return;
	}
	add_register(registers, PEBS_ENABLE, value, value);
}

/* The guide's name of a bit, if it has one; else the table's. */
static const char *guides_name(const struct known_offcore *offcore, const char *name)
{
	for (size_t i = 0; i < offcore->nr_aliases; i++)
		if (!strcmp(offcore->aliases[i].of, name) && !strcmp(offcore->aliases[i].source, "guide"))
			return offcore->aliases[i].name;
	return name;
}

static void add_parts(struct register_value *reg, const struct known_offcore *offcore,
		      const struct offcore_part *parts, size_t nr)
{
	for (size_t i = 0; i < nr && __builtin_popcountll(parts[i].bits) == 1; i++) {
		int bit = __builtin_ctzll(parts[i].bits);

		add_field(reg, &(struct field_row){guides_name(offcore, parts[i].name),
						   bit,
						   bit,
						   {"not these", parts[i].description}});
	}
}

/* x86_pmu_extra_regs(), events/core.c, with intel_{nehalem,westmere}_extra_regs. */
static void add_extra(const struct cpu_events *cpu, const struct encoding *encoding,
		      struct registers *registers)
{
	const struct known_offcore *offcore = cpu->offcore;
	const struct offcore_register *row = offcore_register_of(cpu, encoding->config);
	struct register_value *reg;

	if (is_load_latency(cpu, encoding->config))
		add_register(registers, LD_LAT_THRESHOLD, encoding->config1, ~0ULL);
	if (!row)
		return;
	reg = add_register(registers, OFFCORE_RSP + (row - offcore->registers), encoding->config1, ~0ULL);
	add_parts(reg, offcore, offcore->requests, offcore->nr_requests);
	add_parts(reg, offcore, offcore->responses, offcore->nr_responses);
}

/* --- branches --------------------------------------------------------------------------------- */

#define LBR_SELECT_KERNEL 0x001 /* guide, Table 19; a clear bit means that these are recorded */
#define LBR_SELECT_USER	  0x002

bool event_uses_lbr(const struct perf_event_attr *attr)
{
	return attr->branch_sample_type || attr->precise_ip > 1;
}

/* x86_pmu_hw_config(): precise_ip 2 without a filter asks for all branches. perf_copy_attr(),
 * kernel/events/core.c: a filter without a privilege level gets that of the event. */
static __u64 branch_type(const struct perf_event_attr *attr)
{
	__u64 type = attr->branch_sample_type ? attr->branch_sample_type : PERF_SAMPLE_BRANCH_ANY;

	if (type & PERF_SAMPLE_BRANCH_PLM_ALL)
		return type;
	if (!attr->exclude_user)
		type |= PERF_SAMPLE_BRANCH_USER;
	if (!attr->exclude_kernel)
		type |= PERF_SAMPLE_BRANCH_KERNEL;
	return type;
}

/* intel_pmu_setup_hw_lbr_filter() and __intel_pmu_lbr_enable(), intel/lbr.c. */
static void add_lbr(const struct perf_event_attr *attr, const struct cpu_events *cpu,
		    struct registers *registers)
{
	__u64 wanted = branch_type(attr), recorded = 0;

	recorded |= wanted & PERF_SAMPLE_BRANCH_KERNEL ? LBR_SELECT_KERNEL : 0;
	recorded |= wanted & PERF_SAMPLE_BRANCH_USER ? LBR_SELECT_USER : 0;
	for (size_t i = 0; i < cpu->nr_branches; i++)
		if (wanted & branch_kind_bits(cpu->branches[i].filter))
			recorded |= cpu->branches[i].records;
	if (cpu->nr_branches) /* CPUs without rows are filtered by the driver: lbr_sel_map */
		add_register(registers, LBR_SELECT, 0x1ff & ~recorded, ~0ULL);
	add_register(registers, DEBUGCTL, 0x801, 0x801);
}

void registers_of(const struct perf_event_attr *attr, const struct host *host,
		  const struct encoding *encoding, struct registers *registers)
{
	const struct cpu_events *cpu = host->events;
	unsigned int general = general_counters_of(host);
	__u64 config = hardware_config(attr, cpu, encoding);

	*registers = (struct registers){0};
	place_event(attr, cpu, general, config & (X86_RAW_EVENT_MASK | CONFIG_ANY), registers);
	if (registers->refused)
		return;
	add_selection(registers, config);
	if (cpu->perfmon >= 2)
		add_global_control(attr, cpu, general, registers);
	if (attr->precise_ip)
		add_pebs(cpu, encoding, registers);
	add_extra(cpu, encoding, registers);
	if (event_uses_lbr(attr))
		add_lbr(attr, cpu, registers);
}
