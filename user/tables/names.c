// SPDX-License-Identifier: GPL-2.0-only
#include "tables/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>

#include "base/array.h"
#include "base/nearest.h"

/* The sides of software events: perf_exclude_event(), kernel/events/core.c, compares them with the registers
 * that come with the event. Those of a fault are the faulting code's, those of the scheduler its own. */
#define BOTH SIDES_BOTH, NULL, NULL
#define OF_THE_SCHEDULER                                                                                     \
	SIDES_KERNEL, "happens in the kernel alone, in its scheduler", "__perf_sw_event_sched()"
#define OF_OTHER_PROCESSORS                                                                                  \
	SIDES_NONE, "counts nothing: only the kernels of other architectures than x86 count it",             \
		"perf_sw_event(), which nothing in arch/x86 calls for it"

#define HARDWARE(name, alias, id, bit)                                                                       \
	{                                                                                                    \
		name, alias, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id, "", bit, BOTH                           \
	}
#define SOFTWARE(name, alias, id, ...)                                                                       \
	{                                                                                                    \
		name, alias, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, "", -1, __VA_ARGS__                     \
	}
#define CLOCK(name, id)                                                                                      \
	{                                                                                                    \
		name, NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, "ns", -1, SIDES_IGNORED,                 \
			"counts its time on both sides, whichever are asked for", "cpu_clock_event_update()" \
	}

/* The names of `perf list hw sw`. */
const struct generic_event generic_events[] = {
	HARDWARE("cycles", "cpu-cycles", CPU_CYCLES, 0),
	HARDWARE("instructions", NULL, INSTRUCTIONS, 1),
	HARDWARE("cache-references", NULL, CACHE_REFERENCES, 3),
	HARDWARE("cache-misses", NULL, CACHE_MISSES, 4),
	HARDWARE("branches", "branch-instructions", BRANCH_INSTRUCTIONS, 5),
	HARDWARE("branch-misses", NULL, BRANCH_MISSES, 6),
	HARDWARE("bus-cycles", NULL, BUS_CYCLES, 2),
	HARDWARE("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND, -1),
	HARDWARE("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND, -1),
	HARDWARE("ref-cycles", NULL, REF_CPU_CYCLES, -1),
	CLOCK("cpu-clock", CPU_CLOCK),
	CLOCK("task-clock", TASK_CLOCK),
	SOFTWARE("page-faults", "faults", PAGE_FAULTS, BOTH),
	SOFTWARE("minor-faults", NULL, PAGE_FAULTS_MIN, BOTH),
	SOFTWARE("major-faults", NULL, PAGE_FAULTS_MAJ, BOTH),
	SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES, OF_THE_SCHEDULER),
	SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS, OF_THE_SCHEDULER),
	SOFTWARE("alignment-faults", NULL, ALIGNMENT_FAULTS, OF_OTHER_PROCESSORS),
	SOFTWARE("emulation-faults", NULL, EMULATION_FAULTS, OF_OTHER_PROCESSORS),
	SOFTWARE("dummy", NULL, DUMMY, SIDES_NONE,
		 "counts nothing: it is there for the notes that come with it", "perf_swevent_init()"),
	SOFTWARE("bpf-output", NULL, BPF_OUTPUT, SIDES_NONE,
		 "counts nothing: it is there for the output of BPF programs", "bpf_perf_event_output()"),
	SOFTWARE("cgroup-switches", NULL, CGROUP_SWITCHES, OF_THE_SCHEDULER),
};
const size_t nr_generic_events = ARRAY_SIZE(generic_events);

const struct generic_event *generic_event_of(__u32 type, __u64 config)
{
	for (size_t i = 0; i < nr_generic_events; i++)
		if (generic_events[i].type == type && generic_events[i].config == config)
			return &generic_events[i];
	return NULL;
}

const struct generic_event *generic_event_find(const char *name)
{
	for (size_t i = 0; i < nr_generic_events; i++) {
		const struct generic_event *event = &generic_events[i];

		if (!strcasecmp(event->name, name) || (event->alias && !strcasecmp(event->alias, name)))
			return event;
	}
	return NULL;
}

/* A cache event's name is a cache, an operation and a result, joined by '-': perf's grammar of them
 * (tools/perf/util/parse-events.l). The operation is a read and the result an access if they are left out. */
struct word {
	const char *text;
	__u64 id;
};

#define CACHE(id)  PERF_COUNT_HW_CACHE_##id
#define OP(id)	   (PERF_COUNT_HW_CACHE_OP_##id << 8)
#define RESULT(id) (PERF_COUNT_HW_CACHE_RESULT_##id << 16)

static const struct word caches[] = {
	{"L1-dcache", CACHE(L1D)}, {"l1-d", CACHE(L1D)},
	{"l1d", CACHE(L1D)},	   {"L1-data", CACHE(L1D)},
	{"L1-icache", CACHE(L1I)}, {"l1-i", CACHE(L1I)},
	{"l1i", CACHE(L1I)},	   {"L1-instruction", CACHE(L1I)},
	{"LLC", CACHE(LL)},	   {"L2", CACHE(LL)},
	{"dTLB", CACHE(DTLB)},	   {"d-tlb", CACHE(DTLB)},
	{"Data-TLB", CACHE(DTLB)}, {"iTLB", CACHE(ITLB)},
	{"i-tlb", CACHE(ITLB)},	   {"Instruction-TLB", CACHE(ITLB)},
	{"branch", CACHE(BPU)},	   {"branches", CACHE(BPU)},
	{"bpu", CACHE(BPU)},	   {"btb", CACHE(BPU)},
	{"bpc", CACHE(BPU)},	   {"node", CACHE(NODE)},
};

static const struct word operations[] = {
	{"load", OP(READ)},
	{"loads", OP(READ)},
	{"read", OP(READ)},
	{"store", OP(WRITE)},
	{"stores", OP(WRITE)},
	{"write", OP(WRITE)},
	{"prefetch", OP(PREFETCH)},
	{"prefetches", OP(PREFETCH)},
	{"speculative-read", OP(PREFETCH)},
	{"speculative-load", OP(PREFETCH)},
};

static const struct word results[] = {
	{"refs", RESULT(ACCESS)},   {"Reference", RESULT(ACCESS)}, {"ops", RESULT(ACCESS)},
	{"access", RESULT(ACCESS)}, {"misses", RESULT(MISS)},	   {"miss", RESULT(MISS)},
};

/* Skips the word that *text begins with, and the '-' behind it. Returns NULL if it begins with none. */
static const struct word *next_word(const char **text, const struct word *words, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		size_t length = strlen(words[i].text);

		if (strncasecmp(words[i].text, *text, length) || ((*text)[length] && (*text)[length] != '-'))
			continue;
		/* A '-' at the end stays, and fits nothing. */
		*text += length + ((*text)[length] && (*text)[length + 1]);
		return &words[i];
	}
	return NULL;
}

int cache_event_find(const char *name, __u64 *config)
{
	const struct word *cache, *operation, *result;
	const char *whole = name;

	cache = next_word(&name, caches, ARRAY_SIZE(caches));
	if (!cache)
		return -1;
	result = next_word(&name, results, ARRAY_SIZE(results));
	operation = next_word(&name, operations, ARRAY_SIZE(operations));
	if (!result)
		result = next_word(&name, results, ARRAY_SIZE(results));
	/* A cache alone may be a CPU's event in other letters: ITLB. */
	if (*name || (!operation && !result && strcmp(whole, cache->text)))
		return -1;
	*config = cache->id | (operation ? operation->id : OP(READ)) | (result ? result->id : RESULT(ACCESS));
	return 0;
}

unsigned char name_letter(char letter)
{
	return letter == ':' ? '.' : tolower((unsigned char)letter);
}

int name_order(const char *a, const char *b)
{
	for (;; a++, b++) {
		int x = name_letter(*a), y = name_letter(*b);

		if (x != y || !x)
			return x - y;
	}
}

/* The first member of both kinds of rows is the name, by which they are sorted. */
static int order_of_row(const void *name, const void *row)
{
	return name_order(name, *(const char *const *)row);
}

static const struct known_event *by_name(const struct cpu_events *cpu, const char *name)
{
	return cpu->nr_events ? bsearch(name, cpu->events, cpu->nr_events, sizeof(*cpu->events), order_of_row)
			      : NULL;
}

const struct known_event *known_event_find(const struct cpu_events *cpu, const char *name)
{
	const struct known_event *found = cpu ? by_name(cpu, name) : NULL;
	const struct known_alias *alias = NULL;

	if (cpu && !found && cpu->nr_aliases)
		alias = bsearch(name, cpu->aliases, cpu->nr_aliases, sizeof(*alias), order_of_row);
	return alias ? by_name(cpu, alias->of) : found;
}

int nearest_names(const struct cpu_events *cpu, const char *name, int most, char *text, size_t size)
{
	struct nearest nearest;

	nearest_begin(&nearest, name, most);
	for (size_t i = 0; i < nr_generic_events; i++) {
		nearest_offer(&nearest, generic_events[i].name);
		if (generic_events[i].alias)
			nearest_offer(&nearest, generic_events[i].alias);
	}
	for (size_t i = 0; cpu && i < cpu->nr_events; i++)
		nearest_offer(&nearest, cpu->events[i].name);
	for (size_t i = 0; cpu && i < cpu->nr_aliases; i++)
		nearest_offer(&nearest, cpu->aliases[i].name);
	return nearest_print(&nearest, text, size);
}
