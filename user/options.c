// SPDX-License-Identifier: GPL-2.0-only
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "shared.h"

typedef int (*parse_fn)(struct options *options, const char *name, const char *argument,
			struct refusal *refusal);

static int bad_value(struct refusal *refusal, const char *name, const char *argument)
{
	return refuse(refusal, STATUS_USAGE, "option %s '%s'", name, argument);
}

static int number(const char *name, const char *argument, __u64 least, __u64 most, __u64 *value,
		  struct refusal *refusal)
{
	char *end;

	errno = 0;
	*value = strtoull(argument, &end, 10);
	if (!errno && end != argument && !*end && argument[0] != '-' && *value >= least &&
	    *value <= most)
		return 0;
	bad_value(refusal, name, argument);
	return because(refusal, "it takes a whole number from %llu to %llu", least, most);
}

/* Appends to a list that several options of one kind make together. */
static int join(char *list, size_t size, const char *name, const char *argument,
		struct refusal *refusal)
{
	size_t used = strlen(list);

	if ((size_t)snprintf(list + used, size - used, "%s%s", used ? "," : "", argument) <
	    size - used)
		return 0;
	bad_value(refusal, name, "…");
	return because(refusal, "the list is longer than %zu characters", size);
}

static int parse_events(struct options *options, const char *name, const char *argument,
			struct refusal *refusal)
{
	options->events = options->joined_events;
	return join(options->joined_events, sizeof(options->joined_events), name, argument, refusal);
}

static int parse_metrics(struct options *options, const char *name, const char *argument,
			 struct refusal *refusal)
{
	options->metrics = options->joined_metrics;
	return join(options->joined_metrics, sizeof(options->joined_metrics), name, argument, refusal);
}

static int parse_expect(struct options *options, const char *name, const char *argument,
			struct refusal *refusal)
{
	if (options->nr_expect < EXPECT_MOST) {
		options->expect[options->nr_expect++] = argument;
		return 0;
	}
	bad_value(refusal, name, argument);
	return because(refusal, "a run has at most %d expectations", EXPECT_MOST);
}

static int parse_format(struct options *options, const char *name, const char *argument,
			struct refusal *refusal)
{
	static const char *const names[] = {[FORMAT_JSON] = "json", [FORMAT_TABLE] = "table"};

	for (enum format format = FORMAT_JSON; format <= FORMAT_TABLE; format++)
		if (!strcmp(argument, names[format])) {
			options->format = format;
			return 0;
		}
	bad_value(refusal, name, argument);
	because(refusal, "there is no such format");
	return instead(refusal, "formats: json, table");
}

static int parse_side(struct options *options, const char *name, const char *argument,
		      struct refusal *refusal)
{
	options->side = argument;
	if (!strcmp(argument, "u") || !strcmp(argument, "k"))
		return 0;
	bad_value(refusal, name, argument);
	because(refusal, "it takes u, for the user's side, or k, for the kernel's");
	return instead(refusal, "leave it out for both");
}

static int parse_json(struct options *options, const char *name, const char *argument,
		      struct refusal *refusal)
{
	options->format = FORMAT_JSON;
	return 0;
}

static int parse_per_cpu(struct options *options, const char *name, const char *argument,
			 struct refusal *refusal)
{
	options->per = "cpu";
	return 0;
}

/* Formats that a command has beside those that all have. */
struct own_format {
	const char *name;
	enum format format;
};

static int parse_own_format(struct options *options, const struct own_format *own, const char *name,
			    const char *argument, struct refusal *refusal)
{
	char known[64] = "json, table";
	size_t used = strlen(known);

	for (; own->name; own++) {
		if (!strcmp(argument, own->name)) {
			options->format = own->format;
			return 0;
		}
		used += snprintf(known + used, sizeof(known) - used, ", %s", own->name);
	}
	if (!parse_format(options, name, argument, refusal))
		return 0;
	return instead(refusal, "formats: %s", known);
}

static int parse_branch_format(struct options *options, const char *name, const char *argument,
			       struct refusal *refusal)
{
	static const struct own_format own[] = {{"autofdo", FORMAT_AUTOFDO}, {0}};

	return parse_own_format(options, own, name, argument, refusal);
}

static int parse_profile_format(struct options *options, const char *name, const char *argument,
				struct refusal *refusal)
{
	static const struct own_format own[] = {{"folded", FORMAT_FOLDED}, {"pprof", FORMAT_PPROF}, {0}};

	return parse_own_format(options, own, name, argument, refusal);
}

static int parse_delay(struct options *options, const char *name, const char *argument,
		       struct refusal *refusal)
{
	__u64 ms;

	options->delay_ms = -1;
	if (!strcmp(argument, "-1"))
		return 0;
	if (number(name, argument, 0, 86400000, &ms, refusal))
		return instead(refusal, "or -1: off, until --control enables it");
	options->delay_ms = ms;
	return 0;
}

static int parse_sort(struct options *options, const char *name, const char *argument,
		      struct refusal *refusal)
{
	options->by_mispredicted = !strcmp(argument, "mispredicted");
	if (options->by_mispredicted || !strcmp(argument, "count"))
		return 0;
	bad_value(refusal, name, argument);
	because(refusal, "there is no such order");
	return instead(refusal, "orders: count, mispredicted");
}

static int parse_duration(struct options *options, const char *name, const char *argument,
			  struct refusal *refusal)
{
	char *end;

	options->duration_s = strtod(argument, &end);
	if (end != argument && !*end && options->duration_s > 0 && options->duration_s <= 1e9)
		return 0;
	bad_value(refusal, name, argument);
	because(refusal, "it takes seconds, more than 0");
	return instead(refusal, "for example --duration 2.5");
}

#define NUMBER(function, member, least, most)                                                      \
	static int function(struct options *options, const char *name, const char *argument,      \
			    struct refusal *refusal)                                               \
	{                                                                                          \
		return number(name, argument, least, most, &options->member, refusal);             \
	}
#define STRING(function, member)                                                                   \
	static int function(struct options *options, const char *name, const char *argument,      \
			    struct refusal *refusal)                                               \
	{                                                                                          \
		options->member = argument;                                                        \
		return 0;                                                                          \
	}
#define FLAG(function, member)                                                                     \
	static int function(struct options *options, const char *name, const char *argument,      \
			    struct refusal *refusal)                                               \
	{                                                                                          \
		options->member = true;                                                            \
		return 0;                                                                          \
	}
NUMBER(parse_period, period, 1, (1ULL << 63) - 1) /* the kernel refuses periods with bit 63 */
NUMBER(parse_frequency, frequency, 1, 1000000000)
NUMBER(parse_ldlat, ldlat, 3, 65535) /* guide, Table 17 */
NUMBER(parse_interval, interval_ms, 1, 86400000)
NUMBER(parse_interval_count, interval_count, 1, 1000000000)
NUMBER(parse_repeats, repeats, 1, 1000000)
NUMBER(parse_top, top, 1, 1000000)
NUMBER(parse_max_stack, max_stack, 1, STACK_FRAMES)
STRING(parse_by, by)
STRING(parse_request, request)
STRING(parse_response, response)
STRING(parse_preset, preset)
STRING(parse_pids, pids)
STRING(parse_tids, tids)
STRING(parse_cgroups, cgroups)
STRING(parse_each_cgroup, each_cgroup)
STRING(parse_per, per)
STRING(parse_cpus, cpus)
STRING(parse_cpu, cpu)
STRING(parse_filter, filter)
STRING(parse_control, control)
STRING(parse_output, output)
STRING(parse_events_dir, events_dir)
STRING(parse_need, need)
STRING(parse_symfs, symfs)
STRING(parse_debug_dir, debug_dir)
STRING(parse_kallsyms, kallsyms)
STRING(parse_host_root, host_root)
FLAG(parse_all_cpus, all_cpus)
FLAG(parse_call_graph, call_graph)
FLAG(parse_shared, shared)
FLAG(parse_stream, stream)
FLAG(parse_trace, trace)
FLAG(parse_verbose, verbose)
FLAG(parse_force, force)
FLAG(parse_precise, precise)
FLAG(parse_help, help)

#define SAMPLING  (COMMAND_PROFILE | COMMAND_MEM | COMMAND_BRANCH)
#define WITH_EVENTS (COMMAND_STAT | SAMPLING | COMMAND_EXPLAIN)
#define COUNTING (COMMAND_STAT | COMMAND_OFFCORE)
#define MEASURING (COUNTING | SAMPLING)
#define PLANNING  (MEASURING | COMMAND_EXPLAIN)
#define REPORTING (MEASURING | COMMAND_DOCTOR)
#define WRITING   (REPORTING | COMMAND_SYMBOLIZE)
#define SHOWING   (COMMAND_EXPLAIN | COMMAND_LIST)
#define ALL       (PLANNING | COMMAND_SCHEMA | COMMAND_LIST | COMMAND_DOCTOR | \
		   COMMAND_SYMBOLIZE | COMMAND_FLAMEGRAPH)

static const struct option_row {
	char letter; /* 0: long only */
	const char *name;
	const char *argument; /* NULL: none */
	unsigned int commands;
	parse_fn parse;
	const char *help; /* NULL: for tests, not listed */
} rows[] = {
	{'e', "event", "EVENTS", WITH_EVENTS, parse_events, "what to count or sample: names, rNNNN, "
	 "cpu/event=…,umask=…/, {groups}, modifiers u k h p pp"},
	{'M', "metrics", "METRICS", COMMAND_STAT | COMMAND_EXPLAIN, parse_metrics,
	 "what to derive from counts: ipc, page_faults_per_second, …"},
	{'c', "count", "PERIOD", SAMPLING | COMMAND_EXPLAIN, parse_period,
	 "a sample every PERIOD occurrences"},
	{'F', "freq", "HZ", SAMPLING | COMMAND_EXPLAIN, parse_frequency,
	 "about HZ samples a second (default 4000)"},
	{'g', "call-graph", NULL, COMMAND_PROFILE | COMMAND_EXPLAIN, parse_call_graph,
	 "the calls that led to each sample, by frame pointers (default keys: stack,comm)"},
	{0, "max-stack", "N", COMMAND_PROFILE | COMMAND_EXPLAIN, parse_max_stack,
	 "with -g, no more than N frames of a stack (default: 127, or what the kernel allows)"},
	{0, "by", "KEYS", COMMAND_PROFILE, parse_by,
	 "keys to aggregate by: any of pid,tid,comm,cpu,ip,cgroup,stack (default comm,ip), and names of the "
	 "code: symbol, line, module, place (module and offset)"},
	{0, "by", "KEYS", COMMAND_MEM, parse_by,
	 "keys to aggregate by, besides source, which is always one: any of ip,pid,tid,comm,cpu,cgroup,"
	 "cacheline,offset,page,phys_page,node (default source), and names of the code: symbol, line, module, place"},
	{0, "shared", NULL, COMMAND_MEM, parse_shared,
	 "also the cache lines that cores take from each other, and who loads from where in them"},
	{0, "stream", NULL, COMMAND_MEM, parse_stream,
	 "also each sample as a record, in the order of their times, with the keys of --by"},
	{0, "ldlat", "CYCLES", COMMAND_MEM, parse_ldlat,
	 "loads that take longer than so many core cycles, from 3 on (default 30)"},
	{0, "trace", NULL, COMMAND_BRANCH, parse_trace,
	 "every branch of the threads, by the branch trace store (BTS), instead of samples"},
	{0, "stream", NULL, COMMAND_BRANCH, parse_stream,
	 "with --trace: also each branch as a record, in the order of its thread"},
	{0, "preset", "NAME", COMMAND_OFFCORE, parse_preset,
	 "a matrix that is asked for often: llc (the default), dram, numa, snoop, all"},
	{0, "request", "NAMES", COMMAND_OFFCORE, parse_request,
	 "its rows: requests with ',' between them, those that count as one with '|'"},
	{0, "response", "NAMES", COMMAND_OFFCORE, parse_response, "its columns: responses, likewise"},
	{0, "side", "u|k", COMMAND_MEM | COMMAND_OFFCORE, parse_side,
	 "only the user's side, or only the kernel's"},
	{0, "by", "KEYS", COMMAND_BRANCH, parse_by,
	 "edge (branches, the default) or what they add up to: function, callpair (caller and callee), "
	 "line; symbol (names for edges); range (the code between them); and any of pid,comm,cgroup"},
	{0, "sort", "ORDER", COMMAND_BRANCH, parse_sort,
	 "what comes first: the highest count (the default), or mispredicted"},
	{'p', "pid", "PID,…", MEASURING, parse_pids,
	 "these processes: their threads, and those to come"},
	{'t', "tid", "TID,…", MEASURING, parse_tids,
	 "these threads, and what they start"},
	{'G', "cgroup", "PATH,…", MEASURING, parse_cgroups,
	 "what runs in these cgroups (version 2): paths below the mount, as /proc/PID/cgroup has them"},
	{0, "for-each-cgroup", "PATH,…", COUNTING, parse_each_cgroup,
	 "the same, each cgroup by itself: -G PATH,… --per cgroup"},
	{0, "per", "KEYS", COUNTING, parse_per,
	 "counts apart for each: any of cpu,core,socket,node,thread,cgroup"},
	{0, "per-cpu", NULL, COUNTING, parse_per_cpu, "as --per cpu"},
	{'a', "all-cpus", NULL, MEASURING, parse_all_cpus, "everything on all CPUs"},
	{'C', "cpu", "CPUS", MEASURING, parse_cpus, "everything on these CPUs: 0-3,8"},
	{'I', "interval", "MS", MEASURING, parse_interval, "records every MS milliseconds"},
	{0, "interval-count", "N", MEASURING, parse_interval_count, "stop after N intervals"},
	{'D', "delay", "MS", MEASURING, parse_delay,
	 "count only from MS milliseconds after the start on; -1: when --control says so"},
	{0, "control", "fifo:CTL[,ACK]", MEASURING, parse_control,
	 "obey lines from a FIFO: enable, disable, snapshot, ping, stop; write ack into another"},
	{0, "duration", "S", MEASURING, parse_duration, "stop after S seconds"},
	{'r', "repeat", "N", COMMAND_STAT, parse_repeats,
	 "run COMMAND N times; mean and variance at the end"},
	{0, "expect", "EXPR", COMMAND_STAT, parse_expect,
	 "end with status 4 unless it holds, as often as you like: 'ipc>0.8', 'page-faults<=1e4'"},
	{0, "top", "N", SAMPLING, parse_top, "only the N largest entries; the rest is summed up"},
	{0, "need", "NAMES", COMMAND_DOCTOR, parse_need,
	 "try only these facilities, and end with status 2 if one does not work: mem,branch"},
	{'o', "output", "FILE", WRITING | COMMAND_FLAMEGRAPH, parse_output, "write to FILE instead of stdout"},
	{0, "symfs", "DIR", COMMAND_SYMBOLIZE, parse_symfs,
	 "look for programs, libraries and their debug files below DIR"},
	{0, "debug-dir", "DIR", COMMAND_SYMBOLIZE, parse_debug_dir,
	 "where debug files are (default /usr/lib/debug)"},
	{0, "kallsyms", "FILE", COMMAND_SYMBOLIZE, parse_kallsyms,
	 "a copy of /proc/kallsyms from the boot that the records are of; without it only this boot's "
	 "kernel has names"},
	{0, "cpu", "NAME", SHOWING, parse_cpu,
	 "another CPU's events, on any machine: nehalem-ep, nehalem-ex, westmere-ep"},
	{0, "filter", "BRANCHES", COMMAND_BRANCH | COMMAND_EXPLAIN, parse_filter,
	 "which branches the LBR records: any, any_call, any_ret, ind_call, ind_jmp, cond; sides u, k"},
	{0, "precise", NULL, COMMAND_LIST, parse_precise,
	 "only what the kernel samples precisely, those with [p]"},
	{0, "json", NULL, COMMAND_LIST, parse_json, "as --format json"},
	{0, "format", "FORMAT", COMMAND_BRANCH, parse_branch_format,
	 "json (a record a line), table (default on a terminal) or autofdo (for llvm-profgen)"},
	{0, "format", "FORMAT", COMMAND_PROFILE, parse_profile_format,
	 "json (a record a line), table (default on a terminal), folded (a line a stack), or pprof "
	 "(gzipped); the last two take -g for granted"},
	{0, "format", "FORMAT", (REPORTING | SHOWING) & ~(COMMAND_BRANCH | COMMAND_PROFILE), parse_format,
	 "json (a record a line) or table (default on a terminal)"},
	{'v', "verbose", NULL, COMMAND_STAT, parse_verbose,
	 "the table shows which events are counted together, and each one's counter"},
	{0, "force", NULL, PLANNING, parse_force, "insist on what counts nothing or is undocumented"},
	{0, "events-dir", "DIR", PLANNING | COMMAND_LIST, parse_events_dir,
	 "tables of events and metrics besides those built in, laid out as events/"},
	{0, "host-root", "DIR", PLANNING | COMMAND_LIST | COMMAND_DOCTOR, parse_host_root, NULL},
	{'h', "help", NULL, ALL, parse_help, "this text"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void shown_name(const struct option_row *row, char *text, size_t size)
{
	snprintf(text, size, "--%s", row->name);
}

static int refuse_option(struct refusal *refusal, int found, char **argv, int at)
{
	refuse(refusal, STATUS_USAGE, "option '%s'", argv[at]);
	because(refusal, found == ':' ? "its argument is missing" : "there is no such option");
	return instead(refusal, "see --help");
}

int options_parse(struct options *options, enum command_id command, int argc, char **argv,
		  struct refusal *refusal)
{
	struct option longs[ROWS + 1] = {0};
	/* A missing argument is told apart, and what has a COMMAND stops there: its options are its own. */
	char shorts[3 * ROWS + 3];
	char name[32];
	size_t used = sprintf(shorts, "%s:", command & MEASURING ? "+" : "");
	int found;

	*options = (struct options){.host_root = ""};
	for (size_t i = 0, l = 0; i < ROWS; i++) {
		if (!(rows[i].commands & command))
			continue;
		longs[l++] = (struct option){rows[i].name, rows[i].argument ? required_argument
									     : no_argument,
					     NULL, 256 + i};
		if (rows[i].letter)
			used += snprintf(shorts + used, sizeof(shorts) - used, "%c%s", rows[i].letter,
					 rows[i].argument ? ":" : "");
	}

	optind = 1;
	opterr = 0;
	for (;;) {
		int at = optind;

		while (!(command & MEASURING) && at < argc && argv[at][0] != '-')
			at++;
		found = getopt_long(argc, argv, shorts, longs, NULL);
		if (found == -1)
			break;
		if (found == '?' || found == ':')
			return refuse_option(refusal, found, argv, at < argc ? at : argc - 1);
		for (size_t i = 0; i < ROWS; i++)
			if (found == (int)(256 + i) || (found == rows[i].letter && found)) {
				shown_name(&rows[i], name, sizeof(name));
				if (rows[i].parse(options, name, optarg, refusal))
					return -1;
			}
	}
	options->rest = argv + optind;
	options->nr_rest = argc - optind;
	return 0;
}

bool options_by(const struct options *options, const char *word)
{
	const char *at = options->by;

	for (size_t length; at; at = at[length] ? at + length + 1 : NULL) {
		length = strcspn(at, ",");
		if (strlen(word) == length && !strncmp(at, word, length))
			return true;
	}
	return false;
}

void options_help(enum command_id command, FILE *out)
{
	for (size_t i = 0; i < ROWS; i++) {
		char text[64];

		if (!rows[i].help || !(rows[i].commands & command))
			continue;
		snprintf(text, sizeof(text), "%c%c%s--%s%s%s", rows[i].letter ? '-' : ' ',
			 rows[i].letter ? rows[i].letter : ' ', rows[i].letter ? ", " : "  ",
			 rows[i].name, rows[i].argument ? " " : "",
			 rows[i].argument ? rows[i].argument : "");
		fprintf(out, "  %-24s %s\n", text, rows[i].help);
	}
}
