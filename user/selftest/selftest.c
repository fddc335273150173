// SPDX-License-Identifier: GPL-2.0-only
#include "selftest/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "beside.h"
#include "host/files.h"
#include "memory.h"
#include "output/member.h"
#include "selftest/landmarks.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Of user/selftest/known.S. */
#define TURNS	     100000
#define INSTRUCTIONS (6 + 16 * TURNS + TURNS / 2 + 3)
#define BRANCHES     (1 + 7 * TURNS + 1)
#define LOADS	     (2 + 6 * TURNS)
#define STORES	     (5 * TURNS)
#define STORED_BYTES 16384
#define BUFFER_BYTES (64ULL << 20)

/* An interrupt may be counted among the instructions that it comes between, and these loops take less than
 * a millisecond: one in ten thousand is far more than that. */
#define TOLERANCE 10000

/* --- a run ------------------------------------------------------------------------------------ */

#define ARGUMENTS 24

/* What a run of nhmtap wrote. */
struct run {
	const struct selftest *selftest;
	const char *arguments[ARGUMENTS]; /* nhmtap's, then --, then the program's */
	char words[2][24];		  /* of those that are numbers */
	char events[128];		  /* of one that depends on the CPU */
	json_t *records;
	const struct landmarks *landmarks;
	const struct level *level;   /* what is to answer loads */
	const struct places *places; /* where samples of calls are to lie */
	char expected[200], came[400];
};

static void start_program(const struct run *run, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execv(run->selftest->self, (char *const *)run->arguments);
	_exit(127);
}

static void read_records(struct run *run, int in)
{
	FILE *stream = fdopen(in, "re");
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stream) > 0) {
		json_t *record = json_loads(line, 0, NULL);

		if (record)
			json_array_append_new(run->records, record);
	}
	free(line);
	fclose(stream);
}

/* Returns the exit status, or -1 if there was none. */
static int measure(struct run *run)
{
	int pipe_[2], status;
	pid_t child;

	if (pipe2(pipe_, O_CLOEXEC))
		return -1;
	child = fork();
	if (!child)
		start_program(run, pipe_[1]);
	close(pipe_[1]);
	read_records(run, pipe_[0]);
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static const json_t *record_of(const struct run *run, const char *type)
{
	const json_t *record;
	size_t i;

	json_array_foreach(run->records, i, record)
		if (!strcmp(string(record, "type"), type))
			return record;
	return NULL;
}

static __u64 address(const json_t *object, const char *member)
{
	return strtoull(string(object, member), NULL, 16);
}

/* Calls each with the entries of all records of a type. */
static void each_entry(struct run *run, const char *type, void (*each)(struct run *, const json_t *, void *),
		       void *context)
{
	const json_t *record, *entry;
	size_t i, j;

	json_array_foreach(run->records, i, record) {
		if (strcmp(string(record, "type"), type))
			continue;
		json_array_foreach(json_object_get(record, "entries"), j, entry)
			each(run, entry, context);
	}
}

/* --- exact counts ----------------------------------------------------------------------------- */

struct counted {
	const char *event;
	__u64 least;
};

static bool judge_counts(struct run *run, const struct counted *counted, size_t nr)
{
	size_t used = 0, said = 0;
	bool right = true;

	for (size_t i = 0; i < nr; i++) {
		const json_t *record;
		size_t r;

		said += snprintf(run->expected + said, sizeof(run->expected) - said,
				 "%s%s %llu, and at most one in %d more", i ? "; " : "", counted[i].event,
				 counted[i].least, TOLERANCE);
		json_array_foreach(run->records, r, record) {
			__u64 value = integer(record, "value");

			/* The modifier is not part of a table's name. */
			if (strcmp(string(record, "type"), "count") ||
			    strncmp(string(record, "event"), counted[i].event, strlen(counted[i].event)))
				continue;
			used += snprintf(run->came + used, sizeof(run->came) - used, "%s%s %llu (%s)",
					 used ? "; " : "", counted[i].event, value, string(record, "status"));
			right = right && !strcmp(string(record, "status"), "counted") &&
				value >= counted[i].least &&
				value <= counted[i].least + counted[i].least / TOLERANCE;
		}
	}
	return right && used;
}

static bool judge_instructions(struct run *run)
{
	static const struct counted counted[] = {{"instructions:u", INSTRUCTIONS}, {"branches:u", BRANCHES}};

	return judge_counts(run, counted, COUNT(counted));
}

static bool judge_accesses(struct run *run)
{
	const struct cpu_events *cpu = run->selftest->host->events;
	const struct counted counted[] = {{cpu->loads, LOADS}, {cpu->stores, STORES}};

	return judge_counts(run, counted, COUNT(counted));
}

/* --- samples ---------------------------------------------------------------------------------- */

/* Samples, those that are where they should be, and an example of one that is not. */
struct shares {
	__u64 all, right;
	char example[100];
};

static void add_share(struct shares *shares, __u64 samples, bool right, const char *example)
{
	shares->all += samples;
	shares->right += right ? samples : 0;
	if (!right && !*shares->example)
		snprintf(shares->example, sizeof(shares->example), "%s", example);
}

/* Whether there are enough samples, and so many of a hundred are right. */
static bool judge_shares(struct run *run, const struct shares *shares, __u64 least, int percent)
{
	snprintf(run->came, sizeof(run->came), "%llu of %llu%s%s", shares->right, shares->all,
		 *shares->example ? ", not so: " : "", shares->example);
	return shares->all >= least && shares->right * 100 >= shares->all * percent;
}

/* Where samples of the program's calls lie: at the calls, or where these lead. */
struct places {
	const char *what, *first, *second;
};

static const struct places calls = {"calls", "branch_direct", "branch_indirect"},
			   called = {"functions, behind a call", "direct", "indirect"};

static void at_call(struct run *run, const json_t *entry, void *shares)
{
	__u64 ip = address(entry, "ip");

	add_share(shares, integer(entry, "samples"),
		  ip == landmark_address(run->landmarks, run->places->first) ||
			  ip == landmark_address(run->landmarks, run->places->second),
		  string(entry, "ip"));
}

static bool judge_precise(struct run *run)
{
	struct shares shares = {0};

	snprintf(run->expected, sizeof(run->expected),
		 "99 of 100 samples of calls, and 300 at least, lie at one of the program's two %s",
		 run->places->what);
	each_entry(run, "profile", at_call, &shares);
	return judge_shares(run, &shares, 300, 99);
}

/* From where to where the loop's branches lead. */
static const char *const edges[][2] = {
	{"branch_direct", "direct"},	 {"direct", "after_direct"},
	{"branch_indirect", "indirect"}, {"branch_return", "after_indirect"},
	{"branch_jz", "branch_jmp"},	 {"branch_jmp", "behind_jmp"},
	{"branch_jnz", "loop"},
};

struct edges_seen {
	struct shares shares;
	bool seen[COUNT(edges)];
};

static void along_edge(struct run *run, const json_t *entry, void *context)
{
	struct edges_seen *seen = context;
	const json_t *from = json_object_get(entry, "from"), *to = json_object_get(entry, "to");
	char example[100];
	bool right = false;

	if (strcmp(string(entry, "kind"), "edge"))
		return;
	for (size_t i = 0; i < COUNT(edges); i++)
		if (address(from, "offset") == landmark_offset(run->landmarks, edges[i][0]) &&
		    address(to, "offset") == landmark_offset(run->landmarks, edges[i][1]))
			right = seen->seen[i] = true;
	snprintf(example, sizeof(example), "%.40s to %.40s", string(from, "offset"), string(to, "offset"));
	add_share(&seen->shares, integer(entry, "count"), right, example);
}

static bool judge_edges(struct run *run)
{
	struct edges_seen seen = {0};
	bool all = true;

	snprintf(run->expected, sizeof(run->expected),
		 "the loop's %zu branches, and 99 of 100 that are recorded are these", COUNT(edges));
	each_entry(run, "branch", along_edge, &seen);
	for (size_t i = 0; i < COUNT(edges); i++)
		all = all && seen.seen[i];
	return judge_shares(run, &seen.shares, 1000, 99) && all;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* What answered, by the kernel's fields: mem_lvl, a bit each, and mem_lvl_num. */
struct level {
	const char *name;
	unsigned int bits, number;
};

static const struct level l1 = {"L1", PERF_MEM_LVL_L1, PERF_MEM_LVLNUM_L1},
			  l2 = {"L2", PERF_MEM_LVL_L2, PERF_MEM_LVLNUM_L2},
			  l3 = {"L3", PERF_MEM_LVL_L3, PERF_MEM_LVLNUM_L3},
			  memory = {"memory",
				    PERF_MEM_LVL_LOC_RAM | PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2,
				    PERF_MEM_LVLNUM_RAM};

static bool is_level(const struct level *level, __u64 data_src)
{
	unsigned int bits = data_src >> PERF_MEM_LVL_SHIFT & 0x3fff,
		     number = data_src >> PERF_MEM_LVLNUM_SHIFT & 0xf;

	return bits & ~(PERF_MEM_LVL_HIT | PERF_MEM_LVL_MISS | PERF_MEM_LVL_NA) ? (bits & level->bits)
										: number == level->number;
}

/* Whether it is an access to the first bytes of the program's buffer. */
static bool in_buffer(const struct run *run, const json_t *entry, __u64 bytes)
{
	__u64 buffer = landmark_address(run->landmarks, "buffer"), line = address(entry, "cacheline");

	return line >= buffer && line < buffer + bytes;
}

static void answered(struct run *run, const json_t *entry, void *shares)
{
	const json_t *record = record_of(run, "mem"), *source;
	__u64 data_src = 0;
	char example[100];
	size_t i;

	if (address(entry, "ip") != landmark_address(run->landmarks, "load_site"))
		return;
	json_array_foreach(json_object_get(record, "sources"), i, source)
		if (!strcmp(string(source, "source"), string(entry, "source")))
			data_src = address(source, "data_src");
	snprintf(example, sizeof(example), "%.60s at %.30s", string(entry, "source"),
		 string(entry, "cacheline"));
	add_share(shares, integer(entry, "samples"),
		  is_level(run->level, data_src) && in_buffer(run, entry, BUFFER_BYTES), example);
}

static bool judge_level(struct run *run)
{
	struct shares shares = {0};

	snprintf(
		run->expected, sizeof(run->expected),
		"80 of 100 samples of the chain's load, and 20 at least, from the program's buffer and in %s",
		run->level->name);
	each_entry(run, "mem", answered, &shares);
	return judge_shares(run, &shares, 20, 80);
}

static void stored(struct run *run, const json_t *entry, void *shares)
{
	char example[100];

	snprintf(example, sizeof(example), "%.40s to %.40s", string(entry, "ip"), string(entry, "cacheline"));
	add_share(shares, integer(entry, "samples"),
		  address(entry, "ip") == landmark_address(run->landmarks, "store_site") &&
			  in_buffer(run, entry, STORED_BYTES),
		  example);
}

static bool judge_stores(struct run *run)
{
	struct shares shares = {0};

	snprintf(run->expected, sizeof(run->expected),
		 "99 of 100 samples of stores, and 300 at least, from the program's store to its buffer");
	each_entry(run, "mem", stored, &shares);
	return judge_shares(run, &shares, 300, 99);
}

/* --- the tests -------------------------------------------------------------------------------- */

#define PAGE_BYTES 4096

/* Bytes of the cache of a level, unified or of data; `otherwise` where the kernel does not say. */
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

#define CHAIN_TURNS(pages) (100000 / (64 * (pages)) + 4)
#define MOST_PAGES	   16384 /* of the program's buffer */

/* The program's arguments for a chain that fits a level and not the one before it: half of the first, twice
 * the first, or four times the second. Pages lie anywhere in physical memory. Were the second chain longer,
 * one of the second level's sets could get more lines than it has ways. */
static void chain_in(struct run *run, size_t at, int level)
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

#define LOADS_OF(keys) "mem", "--side", "u", "--ldlat", "3", "-c", "37", "--by", keys

static const struct test {
	const char *name, *title;
	const char *nhmtap[ARGUMENTS / 2], *program[6]; /* each ends with NULL */
	bool accesses; /* nhmtap's last argument is the CPU's events of loads and stores */
	int chain; /* the level that a chain of loads is to fit; 0: the program's arguments are all there */
	const struct level *level;   /* what its loads are to be answered by */
	const struct places *places; /* where its samples are to lie */
	bool (*judge)(struct run *run);
} tests[] = {
	{"counts",
	 "instructions and branches are counted exactly",
	 {"stat", "-e", "instructions:u,branches:u"},
	 {"count"},
	 .judge = judge_instructions},
	{"accesses",
	 "loads and stores are counted exactly",
	 {"stat", "-e"},
	 {"count"},
	 .accesses = true,
	 .judge = judge_accesses},
	{"precise",
	 "precise samples lie at what they are samples of",
	 {"profile", "-e", "r02c4:upp", "-c", "97", "--by", "ip"},
	 {"count"},
	 .places = &calls,
	 .judge = judge_precise},
	{"records",
	 "the records of precise samples name the instruction that comes next",
	 {"profile", "-e", "r02c4:up", "-c", "97", "--by", "ip"},
	 {"count"},
	 .places = &called,
	 .judge = judge_precise},
	{"edges",
	 "the last branch record has the branches that were taken",
	 {"branch", "-e", "branches:u", "-c", "997", "--filter", "any,u", "--by", "edge"},
	 {"count"},
	 .judge = judge_edges},
	{"l1",
	 "a chain that fits the first level is found there",
	 {LOADS_OF("ip,cacheline")},
	 {"loads"},
	 .chain = 1,
	 .level = &l1,
	 .judge = judge_level},
	{"l2",
	 "a chain that fits the second level is found there",
	 {LOADS_OF("ip,cacheline")},
	 {"loads"},
	 .chain = 2,
	 .level = &l2,
	 .judge = judge_level},
	{"l3",
	 "a chain that fits the third level is found there",
	 {LOADS_OF("ip,cacheline")},
	 {"loads"},
	 .chain = 3,
	 .level = &l3,
	 .judge = judge_level},
	{"memory",
	 "a chain that is flushed before each turn is found in memory",
	 {LOADS_OF("ip,cacheline")},
	 {"loads", "64", "16", "f"},
	 .level = &memory,
	 .judge = judge_level},
	{"stores",
	 "stores are sampled with their addresses",
	 {"mem", "--stores", "--side", "u", "-c", "101", "--by", "ip,cacheline"},
	 {"stores"},
	 .judge = judge_stores},
};
const size_t nr_selftests = COUNT(tests);

static void arguments_of(struct run *run, const struct test *test)
{
	size_t nr = 0;

	run->arguments[nr++] = run->selftest->self;
	for (size_t i = 0; test->nhmtap[i]; i++)
		run->arguments[nr++] = test->nhmtap[i];
	if (test->accesses) {
		const struct cpu_events *cpu = run->selftest->host->events;

		snprintf(run->events, sizeof(run->events), "%s:u,%s:u", cpu->loads, cpu->stores);
		run->arguments[nr++] = run->events;
	}
	run->arguments[nr++] = "--format";
	run->arguments[nr++] = "json";
	run->arguments[nr++] = "--";
	run->arguments[nr++] = run->selftest->program;
	for (size_t i = 0; test->program[i]; i++)
		run->arguments[nr++] = test->program[i];
	if (test->chain)
		chain_in(run, nr, test->chain);
}

static json_t *command_value(const struct run *run)
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

static void put_verdict(json_t *record, struct run *run, const struct test *test, int status)
{
	const json_t *error = record_of(run, "error");
	bool right;

	if (error) {
		leave_out(record, string(error, "why"));
		return;
	}
	right = test->judge(run);
	if (status)
		snprintf(run->came, sizeof(run->came), "nhmtap ended with status %d", status);
	json_object_set_new(record, "expected", json_string(run->expected));
	json_object_set_new(record, "came", json_string(run->came));
	json_object_set_new(record, "verdict", json_string(right && !status ? "passed" : "failed"));
}

/* Why there is nothing to be measured here; NULL: there is. Where the kernel does not tell caches, all are
 * taken to be there. */
static const char *lacking(const struct host *host, const struct test *test)
{
	if (test->accesses && (!host->events || !host->events->loads))
		return "no table says which event here counts each load and each store once";
	if (test->chain && cache_bytes(host, 1, 0) && !cache_bytes(host, test->chain, 0))
		return "this machine has no cache of this level";
	return NULL;
}

json_t *selftest_run(const struct selftest *selftest, size_t i)
{
	const struct test *test = &tests[i];
	const char *lacks = lacking(selftest->host, test);
	struct landmarks *landmarks;
	struct run run = {.selftest = selftest, .level = test->level, .places = test->places};
	json_t *record =
		json_pack("{s:s, s:s, s:s}", "type", "selftest", "name", test->name, "title", test->title);
	int status;

	if (lacks)
		return leave_out(record, lacks);
	landmarks = landmarks_read(selftest->program);
	run.landmarks = landmarks;
	run.records = json_array();
	arguments_of(&run, test);
	json_object_set_new(record, "command", command_value(&run));
	status = measure(&run);
	put_verdict(record, &run, test, status);
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
