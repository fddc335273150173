// SPDX-License-Identifier: GPL-2.0-only
/* Options that several commands share. */
#include "option/models.h"
#include "option/option.h"
#include "shared.h"

const struct option_row event_rows[] = {
	{'e', "event", "EVENTS", OPTION_LIST, COMMON(events), .values = VALUES_EVENTS,
	 .help = "what to count or sample: names, rNNNN, cpu/event=…,umask=…/, {groups}, modifiers u k h p "
		 "pp"},
	{0},
};

const struct option_row sampling_rows[] = {
	{'c', "count", "PERIOD", OPTION_NUMBER, COMMON(period), .least = 1,
	 .most = (1ULL << 63) - 1, /* the kernel refuses periods with bit 63 */
	 .help = "a sample every PERIOD occurrences"},
	{'F', "freq", "HZ", OPTION_NUMBER, COMMON(frequency), .least = 1, .most = 1000000000,
	 .help = "about HZ samples a second (default 4000)"},
	{0},
};

const struct option_row where_rows[] = {
	{0, "where", "CONDITION", OPTION_TEXT, COMMON(where), .again = AGAIN_REFUSED,
	 .help = "only samples that meet it, as the kernel's program sees them: comparisons of ip, pid, tid, "
		 "cpu, comm, cgroup, period, and in mem addr, latency, source, with && || ! ( ): "
		 "'latency>=100 && comm==db'"},
	{0},
};

static const char *const unwind_ways[] = {UNWIND_AUTO, UNWIND_FP, UNWIND_TABLES, NULL};

const struct option_row stack_rows[] = {
	{'g', "call-graph", NULL, OPTION_FLAG, COMMON(call_graph),
	 .help = "record the stack of each sample (default keys: stack,comm)"},
	{0, "unwind", "WAY", OPTION_WORD, COMMON(unwind), .words = unwind_ways,
	 .help = "with -g, how to walk programs' stacks: tables (of .eh_frame), fp (frame pointers), or auto "
		 "(the default: tables where this kernel allows them)"},
	{0, "max-stack", "N", OPTION_NUMBER, COMMON(max_stack), .least = 1, .most = STACK_FRAMES,
	 .help = "with -g, at most N frames of a stack (default: 127; with fp at most what the kernel "
		 "allows)"},
	{0},
};

const struct option_row target_rows[] = {
	{'p', "pid", "PID,…", OPTION_TEXT, COMMON(pids), .again = AGAIN_JOINS, .values = VALUES_PIDS,
	 .help = "these processes: all of their threads, also later ones"},
	{'t', "tid", "TID,…", OPTION_TEXT, COMMON(tids), .again = AGAIN_JOINS, .values = VALUES_PIDS,
	 .help = "these threads, and what they start"},
	{'G', "cgroup", "PATH,…", OPTION_TEXT, COMMON(cgroups), .again = AGAIN_JOINS,
	 .values = VALUES_CGROUPS,
	 .help = "what runs in these cgroups (version 2): paths below the mount, as /proc/PID/cgroup has "
		 "them, or patterns such as '/kubepods*/**' of cgroups that come and go"},
	{0, "container", "ID,…", OPTION_TEXT, COMMON(containers), .again = AGAIN_JOINS,
	 .help = "what runs in these containers, which may come and go: ids or their beginnings, or uids of "
		 "pods"},
	{'a', "all-cpus", NULL, OPTION_FLAG, COMMON(all_cpus), .help = "all CPUs, system-wide"},
	{'C', "cpu", "CPUS", OPTION_TEXT, COMMON(cpus), .again = AGAIN_JOINS,
	 .help = "these CPUs, system-wide: 0-3,8"},
	{0},
};

static const char *const per_cpu[] = {"cpu", NULL};
static const char *const per_keys[] = {"cpu", "core", "socket", "node", "thread", "cgroup", NULL};

const struct option_row per_rows[] = {
	{0, "for-each-cgroup", "PATH,…", OPTION_TEXT, COMMON(each_cgroup), .again = AGAIN_JOINS,
	 .values = VALUES_CGROUPS, .help = "each of these cgroups separately: -G PATH,… --per cgroup"},
	{0, "per", "KEYS", OPTION_TEXT, COMMON(per), .again = AGAIN_JOINS, .words = per_keys,
	 .help = "count separately for each: any of cpu,core,socket,node,thread,cgroup (with -a: all "
		 "cgroups)"},
	{0, "per-cpu", NULL, OPTION_FIXED, COMMON(per), .words = per_cpu, .line_only = true,
	 .help = "the same as --per cpu"},
	{0},
};

#define DAY_MS 86400000

const struct option_row interval_rows[] = {
	{'I', "interval", "MS", OPTION_NUMBER, COMMON(interval_ms), .least = 1, .most = DAY_MS,
	 .member = "interval_ms", .help = "write records every MS milliseconds"},
	{0, "interval-count", "N", OPTION_NUMBER, COMMON(interval_count), .least = 1, .most = 1000000000,
	 .help = "stop after N intervals"},
	{'D', "delay", "MS", OPTION_DELAY, COMMON(delay_ms), .most = DAY_MS, .member = "delay_ms",
	 .help = "begin counting MS milliseconds after the start; -1: when --control enables it"},
	{0, "control", "fifo:CTL[,ACK]", OPTION_TEXT, COMMON(control), .line_only = true,
	 .again = AGAIN_REFUSED,
	 .help = "take commands from a FIFO, one per line: enable, disable, snapshot, ping, stop; write ack "
		 "to another"},
	{0, "duration", "S", OPTION_SECONDS, COMMON(duration_s), .member = "duration_s",
	 .help = "stop after S seconds; with --repeat, each execution"},
	{0},
};

const struct option_row top_rows[] = {
	{0, "top", "N", OPTION_NUMBER, COMMON(top), .least = 1, .most = 1000000,
	 .help = "list only the N largest entries and sum up the rest"},
	{0},
};

const struct option_row output_rows[] = {
	{'o', "output", "FILE", OPTION_TEXT, COMMON(output), .line_only = true, .again = AGAIN_REFUSED,
	 .help = "write to FILE instead of stdout, replacing its content"},
	{0},
};

static const char *const temporalities[] = {"delta", CUMULATIVE, NULL};

const struct option_row stream_rows[] = {
	{'o', "output", "PLACE", OPTION_TEXTS, COMMON(outputs), .line_only = true,
	 .help = "write to PLACE or FORMAT=PLACE instead of stdout; repeatable: FILE (overwritten; FILE.zst "
		 "is compressed; %t in its name makes one file per interval), unix:PATH, tcp:HOST:PORT, a "
		 "URL (of otlp, pprof, clickhouse and others), listen (/metrics), - for stdout"},
	{0, "append", NULL, OPTION_FLAG, COMMON(append), .line_only = true,
	 .help = "with -o: append to files instead of replacing them"},
	{0, "queue", "BYTES", OPTION_NUMBER, COMMON(queue_bytes), .least = 1 << 13, .most = 1ULL << 40,
	 .line_only = true,
	 .help = "queue at most BYTES for a slow reader (default 8388608); beyond that, intervals are "
		 "merged"},
	{0, "temporality", "WHICH", OPTION_WORD, COMMON(temporality), .words = temporalities,
	 .line_only = true,
	 .help = "otlp: each point counts since the previous one (delta, the default) or since the start "
		 "(cumulative)"},
	{0, "tls-ca-file", "FILE", OPTION_TEXT, COMMON(tls_files[0]), .line_only = true,
	 .again = AGAIN_REFUSED,
	 .help = "for https:// outputs: trust the CAs in FILE (PEM) instead of the system's"},
	{0, "tls-cert-file", "FILE", OPTION_TEXT, COMMON(tls_files[1]), .line_only = true,
	 .again = AGAIN_REFUSED, .help = "for https:// outputs: show the client certificate in FILE (PEM)"},
	{0, "tls-key-file", "FILE", OPTION_TEXT, COMMON(tls_files[2]), .line_only = true,
	 .again = AGAIN_REFUSED, .help = "the private key of --tls-cert-file (PEM)"},
	{0, "tls-insecure-skip-verify", NULL, OPTION_FLAG, COMMON(tls_unverified), .line_only = true,
	 .help = "for https:// outputs: send to whoever answers; start records say so"},
	{0, "headers-file", "FILE", OPTION_TEXT, COMMON(headers_file), .line_only = true,
	 .again = AGAIN_REFUSED,
	 .help = "for http:// and https:// outputs: send the headers in FILE, one 'Name: value' a line"},
	{0, "memory", "SIZE", OPTION_TEXT, COMMON(memory), .line_only = true,
	 .help = "use at most SIZE (32M) of memory, the kernel's memory for the run included; the start "
		 "record lists what was made smaller"},
	{0, "cpu-share", "SHARE", OPTION_TEXT, COMMON(cpu_share), .line_only = true,
	 .help = "use at most SHARE (1%) of one CPU, the kernel's time for samples included, by sampling "
		 "less often; records give the period used"},
	{0, "listen", "ADDRESS", OPTION_TEXT, COMMON(listen), .line_only = true, .again = AGAIN_REFUSED,
	 .help = "answer HTTP at unix:PATH, tcp:HOST:PORT (loopback) or public-tcp:HOST:PORT while the run "
		 "goes on: /healthz, /readyz, and /metrics with -o openmetrics=listen"},
	{0, "series", "N", OPTION_NUMBER, COMMON(series), .least = 1, .most = 1000000, .line_only = true,
	 .help = "export metrics by functions, pids and other keys too, in at most N series; the others are "
		 "summed up as other"},
	{0},
};

const struct option_row format_rows[] = {
	{0, "format", "FORMAT", OPTION_TEXT, COMMON(format), .values = VALUES_FORMATS, .line_only = true,
	 .help = "how records are written (default: table on a terminal, json elsewhere)"},
	{0},
};

#define QUIET                                                                                                \
	{                                                                                                    \
		'q', "quiet", NULL, OPTION_FLAG, COMMON(quiet),                                              \
			.line_only = true, .help = "show no progress on stderr, and not what to try next"    \
	}

#define VERBOSE                                                                                              \
	{                                                                                                    \
		'v', "verbose", NULL, OPTION_FLAG, COMMON(verbose),                                          \
			.line_only = true,                                                                   \
			.help = "say on stderr what is opened, loaded and attached; stat's table shows "     \
				"groups and "                                                                \
				"counters"                                                                   \
	}

const struct option_row quiet_rows[] = {QUIET, {0}};

const struct option_row told_rows[] = {VERBOSE, QUIET, {0}};

const struct option_row screen_rows[] = {
	VERBOSE,
	{0, "live", NULL, OPTION_FLAG, COMMON(live), .line_only = true,
	 .help = "on a terminal: show each interval in place of the one before (without -I: every second), "
		 "until ^C; "
		 "nhmtap top is a screen with keys"},
	QUIET,
	{0},
};

const struct option_row plan_rows[] = {
	{0, "force", NULL, OPTION_FLAG, COMMON(force),
	 .help = "allow events that count nothing or are undocumented"},
	{0},
};

const struct option_row msr_rows[] = {
	{0, "msr", NULL, OPTION_FLAG, COMMON(msr),
	 .help = "allow events that are counted only through model-specific registers; nhmtap writes and "
		 "restores them"},
	{0},
};

const struct option_row table_rows[] = {
	{0, "events-dir", "DIR", OPTION_TEXT, COMMON(events_dir), .line_only = true, .again = AGAIN_REFUSED,
	 .help = "tables of events and metrics besides those built in, laid out as events/"},
	{0, "pmu-events", "PATH", OPTION_TEXT, COMMON(pmu_events), .line_only = true, .again = AGAIN_REFUSED,
	 .help = "events of this CPU from perf's own files: pmu-events of a kernel's source, Intel's "
		 "perfmon, or what perf list -j wrote"},
	{0},
};

const struct option_row host_rows[] = {
	{0, "host-root", "DIR", OPTION_TEXT, COMMON(host_root), .line_only = true},
	{0},
};

const struct option_row cpu_rows[] = {
	{0, "cpu", "NAME", OPTION_TEXT, COMMON(cpu), .values = VALUES_CPUS, .line_only = true,
	 .again = AGAIN_REFUSED,
	 .help = "another CPU's events, on any machine: nehalem-ep, or X5570, a processor's own name; an "
		 "unknown name lists the known ones"},
	{0},
};

const struct option_row machine_rows[] = {
	{0, "machine", "[=MODEL[,cpus=N…]]", OPTION_WHOLE, COMMON(machine), .words = machine_models,
	 .line_only = true,
	 .help = "run this command line on the emulated machine (nhmtap-machine(1)), a Nehalem-EP or MODEL; "
		 "cpus, threads, packages, memory, kernel, date, vary, ips, no-snapshot: as of nhmtap "
		 "machine"},
	{0},
};

const struct option_row help_rows[] = {
	{'h', "help", NULL, OPTION_FLAG, COMMON(help), .line_only = true, .help = "show this text"},
	{0},
};
