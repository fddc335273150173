// SPDX-License-Identifier: GPL-2.0-only
#include "selftest/selftest.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/list.h"
#include "host/files.h"
#include "output/member.h"
#include "selftest/landmarks.h"
#include "selftest/tests.h"
#include "tables/names.h"

/* --- what is known ---------------------------------------------------------------------------- */

static const struct test_places calls = {"one of the program's calls",
					 {"branch_direct", "branch_indirect", "branch_nested"}},
				called = {"one of the program's functions, behind a call",
					  {"direct", "indirect", "nested"}},
				unforeseen = {"the branch that nobody can foretell", {"branch_chance"}};

static const struct edge loop_edges[] = {
	{"branch_direct", "direct", true},
	{"branch_nested", "nested", true},
	{"branch_nested_return", "after_nested", true},
	{"branch_back", "after_direct", true},
	{"branch_indirect", "indirect", true},
	{"branch_return", "after_indirect", true},
	{"branch_jz", "branch_jmp", false},
	{"branch_jmp", "behind_jmp", true},
	{"branch_jnz", "loop", true},
};

/* The last edge is taken once per turn. */
static const struct edge chance_edges[] = {
	{"branch_chance", "behind_chance", false}, {"branch_either", "either", false},
	{"branch_either", "other", false},	   {"either", "after_either", true},
	{"branch_other", "after_either", true},	   {"branch_chance_end", "chance", true},
};

static const struct edges loop = {"the loop's 9 branches", loop_edges, ARRAY_SIZE(loop_edges)},
			  chance = {"the loop's 6 branches", chance_edges, ARRAY_SIZE(chance_edges)};

static const struct level l1 = {"L1", PERF_MEM_LVL_L1, PERF_MEM_LVLNUM_L1, 0, "load_site"},
			  l2 = {"L2", PERF_MEM_LVL_L2, PERF_MEM_LVLNUM_L2, 0, "load_site"},
			  l3 = {"L3", PERF_MEM_LVL_L3, PERF_MEM_LVLNUM_L3, 0, "load_site"},
			  memory = {"memory",
				    PERF_MEM_LVL_LOC_RAM | PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2,
				    PERF_MEM_LVLNUM_RAM, 0, "load_site"},
			  under_way = {"a line fill buffer", PERF_MEM_LVL_LFB, PERF_MEM_LVLNUM_LFB, 0,
				       "same_line_site"},
			  modified = {"L3, modified by another core", PERF_MEM_LVL_L3, PERF_MEM_LVLNUM_L3,
				      PERF_MEM_SNOOP_HITM, "load_site"},
			  clean = {"L3, unmodified in another core", PERF_MEM_LVL_L3, PERF_MEM_LVLNUM_L3,
				   PERF_MEM_SNOOP_HIT, "load_site"};

/* The number of loads of a chain of 256 pages in all of its turns. The third level has each of its lines. */
#define CHAIN_TURNS(pages) (100000 / (PAGE_LINES * (pages)) + 4)
#define L3_LOADS	   (256 * PAGE_LINES * CHAIN_TURNS(256))

/* clang-format off */
#define FROM_MEMORY "ALL_LOCAL_DRAM_AND_REMOTE_CACHE_HIT|LOCAL_DRAM|LLC_MISS.LOCAL_DRAM|LLC_MISS.DRAM," \
		    "REMOTE_DRAM|LLC_MISS.REMOTE_DRAM," \
		    "LOCAL_CACHE|LLC_HIT.ANY_RESPONSE"
#define FROM_L3 "LLC_HIT_NO_OTHER_CORE|LLC_HIT.NO_SNOOP_NEEDED," \
		"LLC_HIT_OTHER_CORE_HIT|LLC_HIT.HIT_OTHER_CORE_NO_FWD," \
		"LLC_HIT_OTHER_CORE_HITM|LLC_HIT.HITM_OTHER_CORE"

#define STAT		      "stat", "-e"
#define PROFILE(event)	      "profile", "-e", event, "-c", "97", "--by", "ip"
#define BRANCHES_OF(filter)   "branch", "-e", "branches:u", "-c", "997", "--filter", filter, "--by", "edge"
#define LOADS_OF(least, keys) "mem", "--side", "u", "--ldlat", least, "-c", "37", "--by", keys
#define REQUESTS(name)	      "offcore", "--side", "u", "-r", "auto", "--request", name, "--response"

static const struct test tests[] = {
	{"counts", "instructions and branches are counted exactly",
	 {STAT}, {"count"},
	 .counted = {{"instructions", EXACTLY(INSTRUCTIONS)}, {"branches", EXACTLY(BRANCHES)}},
	 .judge = judge_counts},
	{"accesses", "loads and stores are counted exactly",
	 {STAT}, {"count"},
	 .counted = {{"loads", EXACTLY(LOADS)}, {"stores", EXACTLY(STORES)}},
	 .judge = judge_counts},
	{"doubles", "scalar and packed operations are counted exactly",
	 {STAT}, {"count"},
	 .counted = {{"SSEX_UOPS_RETIRED.SCALAR_DOUBLE|SIMD_INST_RETIRED.SCALAR_DOUBLE", EXACTLY(TURNS)},
		     {"SSEX_UOPS_RETIRED.PACKED_DOUBLE|SIMD_INST_RETIRED.PACKED_DOUBLE", EXACTLY(TURNS / 2)}},
	 .judge = judge_counts},
	{"splits", "loads of two lines are counted exactly",
	 {STAT}, {"count"},
	 .counted = {{"MEM_UOPS_RETIRED.SPLIT_LOADS", EXACTLY(TURNS)}},
	 .judge = judge_counts},
	/* No more than two events at a time: the first Core has two counters, and none of them is fixed. */
	{"masks", "cycles are counted by how much happens in them",
	 {STAT}, {"count"},
	 .counted = {{.names = "cycles"}, {.names = "cpu/event=0xc0,cmask=1/"}},
	 .judge = judge_masks},
	{"beginnings", "cycles are counted by what doesn't happen in them, and so are runs of cycles by their first",
	 {STAT}, {"count"},
	 .counted = {{.names = "cpu/event=0xc0,cmask=1,inv/"}, {.names = "cpu/event=0xc0,cmask=1,edge/"}},
	 .judge = judge_beginnings},
	{"reading", "a counter that is read while it counts has counted everything before",
	 .judge = judge_own_reading},
	{"period", "samples come as often as their period says",
	 {"profile", "-e", "instructions:u", "-c", "9973", "--by", "ip"}, {"count"},
	 .judge = judge_period},
	{"precise", "precise samples lie at what they are samples of",
	 {PROFILE("r02c4:upp")}, {"count"},
	 .places = &calls, .judge = judge_places},
	{"records", "the records of precise samples name the instruction that comes next",
	 {PROFILE("r02c4:up")}, {"count"},
	 .places = &called, .judge = judge_places},
	{"mispredicted", "precise samples of mispredictions lie at the branch",
	 {PROFILE("r01c5:upp")}, {"random"},
	 .places = &unforeseen, .judge = judge_places},
	{"unforeseen", "half of the branches that nobody can foretell are mispredicted",
	 {STAT}, {"random"},
	 .counted = {{"branch-misses", CHANCES * 8 / 10, CHANCES * 12 / 10}},
	 .judge = judge_counts},
	{"edges", "the last branch record has the branches that were taken",
	 {BRANCHES_OF("any,u")}, {"count"},
	 .edges = &loop, .percent = 99, .judge = judge_edges},
	{"frozen", "the last branch record stands still as soon as an interrupt comes",
	 {BRANCHES_OF("any,u,k")}, {"count"},
	 .edges = &loop, .percent = 90, .judge = judge_edges},
	{"filter", "a filter keeps other branches out of the record",
	 {BRANCHES_OF("any_ret,u")}, {"count"},
	 .needs = NEEDS_FILTER, .judge = judge_filter},
	{"trace", "the branch trace has every branch that was taken",
	 {"branch", "--trace", "--filter", "u", "--by", "edge"}, {"random"},
	 .edges = &chance, .percent = 99, .judge = judge_trace},
	{"l1", "a chain that fits the first level is found there",
	 {LOADS_OF("3", "ip,cacheline")}, {"loads"},
	 .chain = 1, .level = &l1, .judge = judge_level},
	{"l2", "a chain that fits the second level is found there",
	 {LOADS_OF("3", "ip,cacheline")}, {"loads"},
	 .chain = 2, .level = &l2, .judge = judge_level},
	{"l3", "a chain that fits the third level is found there",
	 {LOADS_OF("3", "ip,cacheline")}, {"loads"},
	 .chain = 3, .level = &l3, .judge = judge_level},
	{"memory", "a chain that is flushed before each turn is found in memory",
	 {LOADS_OF("3", "ip,cacheline")}, {"loads", "64", "16", "f"},
	 .level = &memory, .judge = judge_level},
	{"fills", "a load of a line that is on its way finds it there",
	 {LOADS_OF("3", "ip,cacheline")}, {"loads", "64", "16", "f"},
	 .level = &under_way, .judge = judge_level},
	{"threshold", "loads that take no longer than the threshold are left out",
	 {LOADS_OF("4", "ip")}, {"loads"},
	 .chain = 1, .judge = judge_threshold},
	{"modified", "a line that another core has modified is found there",
	 {LOADS_OF("3", "ip,cacheline")}, {"handed"},
	 .needs = NEEDS_CORES, .level = &modified, .judge = judge_level},
	{"clean", "a line that another core has read is found there",
	 {LOADS_OF("3", "ip,cacheline")}, {"handed"},
	 .needs = NEEDS_CORES, .level = &clean, .judge = judge_level},
	{"walks", "loads whose page no TLB has are counted",
	 {STAT}, {"loads", "4096", "1", "p"},
	 .counted = {{"DTLB_LOAD_MISSES.WALK_COMPLETED", 4096 * PAGE_LINES * 9 / 10, 4096 * PAGE_LINES * 12 / 10}},
	 .judge = judge_counts},
	{"translations", "samples of these loads tell that, and that they are not locked",
	 {LOADS_OF("3", "ip,tlb,lock")}, {"loads", "4096", "1", "p"},
	 .judge = judge_walked},
	{"stalls", "cycles in which loads are waited for are the back end's",
	 {STAT}, {"loads", "64", "16", "f"},
	 .counted = {{.names = "cycles"}, {.names = "UOPS_ISSUED.STALL_CYCLES"}, {.names = "RESOURCE_STALLS.ANY"}},
	 .judge = judge_stalls},
	{"stores", "stores are sampled with their addresses, locks and levels",
	 {"mem", "--stores", "--side", "u", "-c", "101", "--by", "ip,cacheline,lock"}, {"stores"},
	 .judge = judge_stores},
	{"from_memory", "requests that memory answers are counted as such",
	 {REQUESTS("DEMAND_DATA_RD")}, {"loads", "64", "16", "f"},
	 .responses = FROM_MEMORY, .elsewhere = true, .requests = 64 * PAGE_LINES * 16, .judge = judge_responses},
	{"from_l3", "requests that the third level answers are counted as such",
	 {REQUESTS("DEMAND_DATA_RD")}, {"loads"},
	 .chain = 3, .responses = FROM_L3, .requests = L3_LOADS, .judge = judge_responses},
	{"write_backs", "modified lines that leave the core are counted",
	 {REQUESTS("COREWB")}, {"loads", "512", "1"},
	 .responses = "ANY_RESPONSE", .requests = 512 * PAGE_LINES, .judge = judge_responses},
	{"uncore", "lines that the cores read are counted outside of them",
	 {"stat", "-a", "-e"}, {"loads"},
	 .chain = 3, .counted = {{"uncore/event=0x08,umask=0x01/", L3_LOADS * 9 / 10, L3_LOADS * 10ULL}},
	 .judge = judge_counts},
};
/* clang-format on */
const size_t nr_selftests = ARRAY_SIZE(tests);

const char *selftest_name(size_t i)
{
	return tests[i].name;
}

/* --- the machine's part ----------------------------------------------------------------------- */

/* The size in bytes of the unified or data cache of a level; `otherwise` if the kernel does not tell. */
static __u64 cache_bytes(const struct host *host, int level, __u64 otherwise)
{
	char type[32], size[32];

	for (int i = 0; i < 8; i++) {
		char folder[96];

		snprintf(folder, sizeof(folder), "/sys/devices/system/cpu/cpu%d/cache/index%d",
			 cpus_next(&host->online, 0), i);
		if (slurp(host, type, sizeof(type), "%s/type", folder) > 0 && strcmp(type, "Instruction") &&
		    slurp(host, size, sizeof(size), "%s/size", folder) > 0 &&
		    slurp_number(host, strcat(folder, "/level"), 0) == level)
			return strtoull(size, NULL, 10) * 1024;
	}
	return otherwise;
}

#define PAGE_BYTES 4096
#define MOST_PAGES 16384 /* size of the program's buffer */

/* Writes the program's arguments for a chain that fits a level, but not the level before it: half the size of
 * the first level, twice the size of the first, or four times the size of the second. Pages may be anywhere
 * in physical memory. If the second of these chains were longer, more lines could fall into one set of the
 * second level than it has ways. */
static void chain_in(struct test_run *run, size_t at, int level)
{
	__u64 nearer = cache_bytes(run->selftest->host, level - 1, level == 2 ? 32768 : 262144);
	unsigned int pages = 1;

	while (2 * pages * PAGE_BYTES <= (level == 1 ? 16384 : nearer) && 8 * pages <= MOST_PAGES)
		pages *= 2;
	pages *= level == 1 ? 1 : level == 2 ? 2 : 4;
	snprintf(run->words[0], sizeof(run->words[0]), "%u", pages);
	snprintf(run->words[1], sizeof(run->words[1]), "%u", CHAIN_TURNS(pages));
	run->arguments[at] = run->words[0];
	run->arguments[at + 1] = run->words[1];
}

/* Finds two cores of a package. Gives a CPU of each. */
static bool two_cores(const struct host *host, int cpus[2])
{
	for (cpus[0] = cpus_next(&host->online, 0); cpus[0] >= 0;
	     cpus[0] = cpus_next(&host->online, cpus[0] + 1))
		for (cpus[1] = cpus_next(&host->online, cpus[0] + 1); cpus[1] >= 0;
		     cpus[1] = cpus_next(&host->online, cpus[1] + 1))
			if (host_shares(host, UNIT_PACKAGE, cpus[0], cpus[1]) &&
			    !host_shares(host, UNIT_CORE, cpus[0], cpus[1]))
				return true;
	return false;
}

static bool several_packages(const struct host *host)
{
	int first = cpus_next(&host->online, 0);

	for (int cpu = first; cpu >= 0; cpu = cpus_next(&host->online, cpu + 1))
		if (!host_shares(host, UNIT_PACKAGE, first, cpu))
			return true;
	return false;
}

/* Whether this CPU has an event of this name. Only names from tables contain a '.'; nhmtap itself refuses
 * other events that are missing. */
static bool has_event(const struct host *host, const char *name)
{
	return !strchr(name, '.') || (host->events && known_event_find(host->events, name));
}

static bool has_response(const struct host *host, const char *name)
{
	const struct known_offcore *offcore = host->events ? host->events->offcore : NULL;

	for (size_t i = 0; offcore && i < offcore->nr_responses; i++)
		if (!strcmp(offcore->responses[i].name, name))
			return true;
	for (size_t i = 0; offcore && i < offcore->nr_aliases; i++)
		if (!strcmp(offcore->aliases[i].name, name))
			return true;
	return false;
}

/* Finds the first of the names that this CPU has. They are separated by '|'. */
static bool first_of(const struct host *host, const char *names, size_t length,
		     bool (*has)(const struct host *, const char *), char *name, size_t size)
{
	const char *end = names + length, *at = names;

	while (at < end) {
		const char *bar = memchr(at, '|', end - at);
		int width = (bar ? bar : end) - at;

		snprintf(name, size, "%.*s", width, at);
		if (has(host, name))
			return true;
		at += width + 1;
	}
	return false;
}

static bool name_event(struct test_run *run, size_t i, const char *names)
{
	const struct cpu_events *cpu = run->selftest->host->events;

	if (!strcmp(names, "loads") || !strcmp(names, "stores")) {
		const char *name = !cpu ? NULL : *names == 'l' ? cpu->loads : cpu->stores;

		snprintf(run->names[i], sizeof(run->names[i]), "%s", name ? name : "");
		return name;
	}
	return first_of(run->selftest->host, names, strlen(names), has_event, run->names[i],
			sizeof(run->names[i]));
}

/* Writes the names of the events, which become nhmtap's last argument. User space is counted, unless an event
 * can't tell it apart. Returns false if the CPU lacks one of the events. */
static bool name_events(struct test_run *run)
{
	for (size_t i = 0; i < EVENTS && run->test->counted[i].names; i++) {
		size_t used = strlen(run->events);

		if (!name_event(run, i, run->test->counted[i].names))
			return false;
		snprintf(run->events + used, sizeof(run->events) - used, "%s%s%s", i ? "," : "",
			 run->names[i],
			 !strncmp(run->names[i], "uncore/", strlen("uncore/")) ? ""
			 : strchr(run->names[i], '/')			       ? "u"
									       : ":u");
	}
	return true;
}

/* Writes the names of the responses that this CPU has. Returns false if it lacks the first one. */
static bool name_responses(struct test_run *run)
{
	size_t length;

	for (const char *at = NULL; (at = list_next(run->test->responses, at, &length));) {
		size_t used = strlen(run->columns);
		char name[80];

		if (first_of(run->selftest->host, at, length, has_response, name, sizeof(name)))
			snprintf(run->columns + used, sizeof(run->columns) - used, "%s%s", used ? "," : "",
				 name);
		else if (!used)
			return false;
	}
	return true;
}

static bool filters_branches(const struct host *host)
{
	const struct cpu_events *cpu = host->events;

	for (size_t i = 0; cpu && i < cpu->nr_branches; i++)
		if (!strcmp(cpu->branches[i].filter, "any_ret"))
			return cpu->branches[i].records;
	return false;
}

/* Why the test can't be done here; NULL if it can. If the kernel gives no information on caches, all levels
 * are assumed to exist. */
static const char *lacking(struct test_run *run)
{
	const struct host *host = run->selftest->host;
	const struct test *test = run->test;
	int cpus[2];

	if (test->chain && cache_bytes(host, 1, 0) && !cache_bytes(host, test->chain, 0))
		return "this machine has no cache of this level";
	if ((test->needs & NEEDS_FILTER) && !filters_branches(host))
		return "no table says that this CPU's last branch record can be limited to returns";
	if ((test->needs & NEEDS_CORES) && !two_cores(host, cpus))
		return "this machine has not two cores in a package";
	if (!name_events(run))
		return "no table says which event here counts them";
	if (test->responses && !name_responses(run))
		return "no table says which of this CPU's off-core responses it is";
	return NULL;
}

/* --- running ---------------------------------------------------------------------------------- */

static void arguments_of(struct test_run *run)
{
	const struct test *test = run->test;
	size_t nr = 0;
	int cpus[2];

	run->arguments[nr++] = run->selftest->self;
	for (size_t i = 0; test->nhmtap[i]; i++)
		run->arguments[nr++] = test->nhmtap[i];
	if (*run->events)
		run->arguments[nr++] = run->events;
	if (*run->columns)
		run->arguments[nr++] = run->columns;
	run->arguments[nr++] = "--format";
	run->arguments[nr++] = "json";
	run->arguments[nr++] = "--";
	run->arguments[nr++] = run->selftest->program;
	for (size_t i = 0; test->program[i]; i++)
		run->arguments[nr++] = test->program[i];
	if (test->chain)
		chain_in(run, nr, test->chain);
	if ((test->needs & NEEDS_CORES) && two_cores(run->selftest->host, cpus)) {
		for (size_t i = 0; i < ARRAY_SIZE(cpus); i++) {
			snprintf(run->words[i], sizeof(run->words[i]), "%d", cpus[i]);
			run->arguments[nr++] = run->words[i];
		}
		run->arguments[nr++] = test->level == &modified ? "m" : "r";
	}
}

static json_t *command_value(const struct test_run *run)
{
	json_t *list = json_array();

	for (size_t i = 1; run->arguments[i]; i++)
		json_array_append_new(list, json_string(run->arguments[i]));
	return list;
}

static json_t *leave_out(json_t *record, const char *why)
{
	json_object_set_new(record, "verdict", json_string("left_out"));
	json_object_set_new(record, "why", json_string(why));
	return record;
}

static void put_verdict(json_t *record, struct test_run *run, int status)
{
	const json_t *error = run_record(run, "error");
	bool right;

	if (error) {
		leave_out(record, string(error, "why"));
		return;
	}
	right = run->test->judge(run);
	if (run->why) {
		leave_out(record, run->why);
		return;
	}
	if (status)
		snprintf(run->came, sizeof(run->came), "nhmtap ended with status %d", status);
	json_object_set_new(record, "expected", json_string(run->expected));
	json_object_set_new(record, "came", json_string(run->came));
	json_object_set_new(record, "verdict", json_string(right && !status ? "passed" : "failed"));
}

json_t *selftest_run(const struct selftest *selftest, size_t i)
{
	const struct test *test = &tests[i];
	struct test_run run = {.selftest = selftest, .test = test};
	const char *lacks = lacking(&run);
	struct landmarks *landmarks;
	json_t *record =
		json_pack("{s:s, s:s, s:s}", "type", "selftest", "name", test->name, "title", test->title);
	int status = 0;

	if (lacks)
		return leave_out(record, lacks);
	landmarks = landmarks_read(selftest->program);
	run.landmarks = landmarks;
	run.elsewhere = test->elsewhere && several_packages(selftest->host);
	run.records = json_array();
	if (test->nhmtap[0]) {
		arguments_of(&run);
		json_object_set_new(record, "command", command_value(&run));
		status = run_measure(&run);
	}
	put_verdict(record, &run, status);
	json_decref(run.records);
	landmarks_release(landmarks);
	return record;
}

int selftest_find(struct selftest *selftest, struct host *host, struct refusal *refusal)
{
	static const char *const beside[] = {"../lib/nhmtap/nhmtap-known", "nhmtap-known", NULL};
	ssize_t length = readlink("/proc/self/exe", selftest->self, sizeof(selftest->self) - 1);

	selftest->host = host;
	selftest->self[length < 0 ? 0 : length] = '\0';
	if (beside_program(selftest->program, sizeof(selftest->program), beside, X_OK))
		return 0;
	refuse(refusal, STATUS_REFUSED, "option --selftest");
	because(refusal, "the program with known counts is missing: %.300s", selftest->program);
	return instead(refusal, "make install puts it into lib/nhmtap");
}
