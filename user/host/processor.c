// SPDX-License-Identifier: GPL-2.0-only
#include "host/processor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#include "base/array.h"
#endif

#define LEAF_BASIC	0x1
#define LEAF_CACHES	0x4
#define LEAF_PERFMON	0xa
#define LEAF_HYPERVISOR 0x40000000
/* The emulated machine's own: nhm_cpuid() of machine/src/nhm/nhm_glue.cc. Then those of its model and
 * version. */
#define LEAF_EMULATED 0x4e480000
#define LEAF_EVENTS   (LEAF_EMULATED + 3) /* ECX: an event's code and umask */

const char *const perfmon_event_names[PERFMON_EVENTS] = {
	"core_cycles", "instructions_retired", "reference_cycles",	"llc_references",
	"llc_misses",  "branches_retired",     "branch_misses_retired",
};

/* --- registers -------------------------------------------------------------------------------- */

static const struct msr_field perf_capabilities[] = {
	{"lbr_format", 0, 6,
	 "0: 32-bit offsets, 1: 64-bit linear, 2: 64-bit effective addresses, "
	 "3: these with the misprediction flag"},
	{"pebs_trap", 6, 1,
	 "PEBS records are written after the instruction (as Linux reads the bit; "
	 "the guide has it the other way round)"},
	{"pebs_registers", 7, 1, "PEBS records hold the architectural registers"},
	{"pebs_format", 8, 4, "0: registers only, 1: with overflow status and load latency"},
	{"smm_freeze", 12, 1, "the PMU can be frozen in system management mode"},
};

/* BTS: SDM volume 4, IA32_MISC_ENABLE bit 11. The others: guide 4.3. */
static const struct msr_field misc_enable[] = {
	{"perfmon_available", 7, 1, "the core's PMU is there"},
	{"bts_unavailable", 11, 1, "there is no branch trace store"},
	{"pebs_unavailable", 12, 1, "there is no PEBS"},
};

#define FIELDS(list) (list), ARRAY_SIZE(list)

static const struct msr known_msrs[NR_MSRS] = {
	[MSR_PERF_CAPABILITIES] = {"IA32_PERF_CAPABILITIES", 0x345, 0, 0, FIELDS(perf_capabilities)},
	[MSR_MISC_ENABLE] = {"IA32_MISC_ENABLE", 0x1a0, 0, 0, FIELDS(misc_enable)},
};

static void read_msrs(struct processor *processor, const struct host *host)
{
	char path[PATH_MAX];
	int fd, error;

	snprintf(path, sizeof(path), "%s/dev/cpu/0/msr", host->root);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	error = errno;
	for (int i = 0; i < NR_MSRS; i++) {
		struct msr *msr = &processor->msrs[i];

		*msr = known_msrs[i];
		if (i == MSR_PERF_CAPABILITIES && processor->cpuid && !CPUID_PDCM(processor->basic))
			msr->error = ENODEV;
		else if (fd < 0)
			msr->error = error;
		else if (pread(fd, &msr->value, sizeof(msr->value), msr->address) != sizeof(msr->value))
			msr->error = errno ? errno : EIO;
	}
	if (fd >= 0)
		close(fd);
}

__u64 msr_field_value(const struct msr *msr, const struct msr_field *field)
{
	return msr->value >> field->low & ((1ULL << field->width) - 1);
}

/* --- CPUID ------------------------------------------------------------------------------------ */

/* Reads the line of `cpuid -r` for this leaf. */
static bool recorded_leaf(const struct host *host, __u32 wanted, __u32 wanted_sub, struct cpuid *leaf)
{
	char path[PATH_MAX], line[256];
	unsigned int number, sub;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpuid", host->root);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, " 0x%x 0x%x: eax=0x%x ebx=0x%x ecx=0x%x edx=0x%x", &number, &sub,
			       &leaf->eax, &leaf->ebx, &leaf->ecx, &leaf->edx) == 6 &&
			number == wanted && sub == wanted_sub;
	if (file)
		fclose(file);
	return found;
}

/* `sub` is the sub-leaf, 0 if the leaf has none. */
static bool read_leaf(const struct host *host, __u32 number, __u32 sub, struct cpuid *leaf)
{
	*leaf = (struct cpuid){0};
	if (host->root[0])
		return recorded_leaf(host, number, sub, leaf);
#if defined(__x86_64__) || defined(__i386__)
	/* No processor has leaves of its own from 0x40000000 to 0x4fffffff (SDM, CPUID), so leaf 0's maximum
	 * says nothing of them. Leaf 1 tells whether there is a hypervisor, and a signature if this machine
	 * is emulated. */
	if (number >> 28 == LEAF_HYPERVISOR >> 28) {
		__cpuid_count(number, sub, leaf->eax, leaf->ebx, leaf->ecx, leaf->edx);
		return true;
	}
	return __get_cpuid_count(number, sub, &leaf->eax, &leaf->ebx, &leaf->ecx, &leaf->edx);
#else
	return false;
#endif
}

static void read_hypervisor(struct processor *processor, const struct host *host)
{
	struct cpuid leaf;

	if (!CPUID_HYPERVISOR(processor->basic))
		return;
	strcpy(processor->hypervisor, "unknown");
	if (read_leaf(host, LEAF_HYPERVISOR, 0, &leaf) && leaf.ebx) {
		memcpy(processor->hypervisor, &leaf.ebx, 4);
		memcpy(processor->hypervisor + 4, &leaf.ecx, 4);
		memcpy(processor->hypervisor + 8, &leaf.edx, 4);
	}
}

static void read_name(const struct host *host, __u32 number, char *name)
{
	struct cpuid leaf;

	if (read_leaf(host, number, 0, &leaf))
		memcpy(name, &leaf, sizeof(leaf));
}

void processor_emulated(const struct host *host, struct emulated *emulated)
{
	static const char signature[] = "nhmEmulation";
	struct cpuid leaf;

	*emulated = (struct emulated){0};
	if (!read_leaf(host, LEAF_EMULATED, 0, &leaf) || leaf.eax < LEAF_EMULATED + 2 ||
	    memcmp(&leaf.ebx, signature, strlen(signature)))
		return;
	read_name(host, LEAF_EMULATED + 1, emulated->model);
	read_name(host, LEAF_EMULATED + 2, emulated->version);
}

bool processor_models(const struct host *host, __u32 code, __u32 umask, __u32 *modelled)
{
	struct cpuid leaf;

	*modelled = umask;
	if (!read_leaf(host, LEAF_EMULATED, 0, &leaf) || leaf.eax < LEAF_EVENTS ||
	    !read_leaf(host, LEAF_EVENTS, umask << 8 | code, &leaf))
		return true;
	*modelled = leaf.ebx;
	return leaf.eax;
}

struct signature signature_of(__u32 eax)
{
	return (struct signature){
		.value = eax,
		.stepping = eax & 0xf,
		.model = eax >> 4 & 0xf,
		.family = eax >> 8 & 0xf,
		.type = eax >> 12 & 3,
		.extended_model = eax >> 16 & 0xf,
		.extended_family = eax >> 20 & 0xff,
	};
}

struct perfmon perfmon_of(const struct cpuid *leaf)
{
	return (struct perfmon){
		.version = leaf->eax & 0xff,
		.general_counters = leaf->eax >> 8 & 0xff,
		.general_width = leaf->eax >> 16 & 0xff,
		.events = leaf->eax >> 24,
		.events_missing = leaf->ebx,
		.fixed_counters = leaf->edx & 0x1f,
		.fixed_width = leaf->edx >> 5 & 0xff,
	};
}

bool processor_perfmon(const struct host *host, struct perfmon *perfmon)
{
	struct cpuid leaf;
	bool there = read_leaf(host, LEAF_PERFMON, 0, &leaf);

	*perfmon = perfmon_of(&leaf);
	return there;
}

/* The most sub-leaves to read: a hypervisor may not report the end of the list. */
#define CACHES_MOST 16

/* CPUID.04H: each sub-leaf describes a cache, with its type in EAX[4:0] and its level in EAX[7:5]. Type 0
 * ends the list. */
bool processor_third_level_cache(const struct host *host)
{
	struct cpuid leaf;

	for (__u32 sub = 0; sub < CACHES_MOST && read_leaf(host, LEAF_CACHES, sub, &leaf) && leaf.eax & 0x1f;
	     sub++)
		if ((leaf.eax >> 5 & 7) == 3)
			return true;
	return false;
}

void processor_gather(struct processor *processor, const struct host *host)
{
	*processor = (struct processor){0};
	processor->cpuid = read_leaf(host, LEAF_BASIC, 0, &processor->basic);
	read_msrs(processor, host);
	if (!processor->cpuid)
		return;
	processor->signature = signature_of(processor->basic.eax);
	processor->architectural = processor_perfmon(host, &processor->perfmon);
	read_hypervisor(processor, host);
}
