// SPDX-License-Identifier: GPL-2.0-only
/* nhmtap doctor: finds out by trying what this machine can do, and says what mends the rest. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "activity/start.h"
#include "base/clock.h"
#include "base/alternatives.h"
#include "base/list.h"
#include "collection/trial.h"
#include "command/host.h"
#include "facility/diagnosis.h"
#include "facility/facility.h"
#include "facility/summary.h"
#include "host/privileges.h"
#include "host/processor.h"
#include "option/command.h"
#include "output/output.h"
#include "plan/permission.h"
#include "record/overhead.h"
#include "record/record.h"
#include "selftest/selftest.h"

/* Number of general counters to try where CPUID does not tell how many there are. */
#define GENERAL_UNKNOWN 8

/* doctor's own options. */
struct doctor_options {
	const char *need; /* --need, NULL if not given */
	bool selftest;	  /* --selftest */
	const char *only; /* --only: names of its tests */
};

struct doctor {
	const struct options *options;
	struct host host;
	struct processor processor;
	struct stream stream;
	json_t *findings; /* the records that were written of permissions, counters and facilities */
	__u64 began_ns;	  /* CLOCK_MONOTONIC */
};

/* --- what is asked for ------------------------------------------------------------------------ */

static bool needs(const char *need, const struct facility *facility)
{
	size_t length;

	for (const char *at = NULL; (at = list_next(need, at, &length));)
		if (facility_find(at, length) == facility)
			return true;
	return !need;
}

static int check_need(const char *need, struct refusal *refusal)
{
	struct alternatives alternatives;
	size_t length;

	for (const char *at = NULL; (at = list_next(need, at, &length));) {
		if (facility_find(at, length))
			continue;
		alternatives_begin(&alternatives, at, length);
		for (size_t i = 0; i < nr_facilities; i++)
			alternatives_offer(&alternatives, facilities[i].name);
		refuse(refusal, STATUS_USAGE, "option --need '%s'", need);
		because(refusal, "there is no facility '%.*s'", (int)length, at);
		return alternatives_end(&alternatives, refusal, "facilities: %s", alternatives.all);
	}
	return 0;
}

static int check_only(const struct doctor_options *own, struct refusal *refusal)
{
	struct alternatives alternatives;
	size_t length, i;

	if (own->only && !own->selftest) {
		refuse(refusal, STATUS_USAGE, "option --only '%s'", own->only);
		because(refusal, "it names tests of --selftest");
		return instead(refusal, "add --selftest");
	}
	for (const char *at = NULL; (at = list_next(own->only, at, &length));) {
		for (i = 0;
		     i < nr_selftests && (strncmp(selftest_name(i), at, length) || selftest_name(i)[length]);)
			i++;
		if (i < nr_selftests)
			continue;
		alternatives_begin(&alternatives, at, length);
		for (i = 0; i < nr_selftests; i++)
			alternatives_offer(&alternatives, selftest_name(i));
		refuse(refusal, STATUS_USAGE, "option --only '%s'", own->only);
		because(refusal, "there is no test '%.*s'", (int)length, at);
		return alternatives_end(&alternatives, refusal, "tests: %s", alternatives.all);
	}
	return 0;
}

static int check_arguments(const struct options *options, struct refusal *refusal)
{
	if (options->nr_rest) {
		refuse(refusal, STATUS_USAGE, "argument '%s'", options->rest[0]);
		because(refusal, "doctor measures no command");
		return instead(refusal, "name facilities with --need");
	}
	if (((const struct doctor_options *)options->own)->selftest &&
	    ((const struct doctor_options *)options->own)->need) {
		refuse(refusal, STATUS_USAGE, "options --selftest and --need");
		because(refusal, "one measures, the other tries what could be measured");
		return instead(refusal, "give one of them");
	}
	if (check_only(options->own, refusal))
		return -1;
	return check_need(((const struct doctor_options *)options->own)->need, refusal);
}

/* --- what there is ---------------------------------------------------------------------------- */

/* Facts about permissions are read from /proc. Without it nothing could be said about them, so that is an
 * error. */
static int check_proc(const struct options *options, struct refusal *refusal)
{
	int error;

	if (options->host_root[0] || !access("/proc/self/status", R_OK))
		return 0;
	error = errno;
	refuse(refusal, STATUS_REFUSED, "reading what this machine has");
	refusal->error = error;
	because(refusal, "/proc can't be read: %s", strerror(error));
	return instead(refusal, "mount -t proc proc /proc");
}

static int gather_facts(struct doctor *doctor, struct refusal *refusal)
{
	if (check_proc(doctor->options, refusal))
		return -1;
	if (command_host(&doctor->host, doctor->options, refusal))
		return -1;
	if (!doctor->options->host_root[0])
		privileges_raise();
	processor_gather(&doctor->processor, &doctor->host);
	doctor->host.perf_filtered = trial_perf_filtered();
	doctor->host.cycles_precise = trial_cycles(&doctor->host);
	doctor->host.cycles_tried = !doctor->options->host_root[0];
	return 0;
}

static void put_record(struct doctor *doctor, json_t *record)
{
	stream_write(&doctor->stream, record, NULL);
}

/* Writes a finding, and keeps it for the diagnosis. */
static void put_finding(struct doctor *doctor, json_t *record)
{
	json_array_append(doctor->findings, record);
	put_record(doctor, record);
}

static void put_permissions(struct doctor *doctor)
{
	struct permission permissions[NR_PERMISSIONS];

	permissions_judge(permissions, &doctor->host);
	for (int i = 0; i < NR_PERMISSIONS; i++)
		put_finding(doctor, permission_record(&permissions[i]));
}

static void put_counters(struct doctor *doctor)
{
	const struct processor *processor = &doctor->processor;
	bool known = processor->architectural && processor->perfmon.general_counters;
	struct free_counters counters;

	free_counters_count(&counters, &doctor->host,
			    known ? processor->perfmon.general_counters : GENERAL_UNKNOWN,
			    processor->perfmon.fixed_counters);
	put_finding(doctor, counters_record(&counters, processor, &doctor->host));
}

/* Tries the facilities of --need, or all of them. If one of --need does not work, the refusal is that of the
 * first such facility. */
static void put_facilities(struct doctor *doctor, struct refusal *refusal)
{
	const struct doctor_options *own = doctor->options->own;
	const char *need = own->need;
	struct finding finding;

	for (size_t i = 0; i < nr_facilities; i++) {
		if (!needs(need, &facilities[i]))
			continue;
		facility_try(&facilities[i], &doctor->host, &finding);
		put_finding(doctor, facility_record(&finding));
		if (finding.works || !need || refusal->asked[0])
			continue;
		*refusal = finding.refusal;
		refusal->status = STATUS_REFUSED;
		snprintf(refusal->asked, sizeof(refusal->asked), "facility '%s'", facilities[i].name);
	}
}

static json_t *end_record(const struct doctor *doctor, const char *reason, int status)
{
	json_t *end = json_pack("{s:s, s:s, s:i}", "type", "end", "reason", reason, "exit_status", status);

	json_object_set_new(end, "duration_ns", json_integer(clock_ns(CLOCK_MONOTONIC) - doctor->began_ns));
	json_object_set_new(end, "overhead", overhead_value(NULL));
	json_object_set_new(end, "records", json_integer(doctor->stream.records + 1));
	return end;
}

/* --selftest: measures a known program instead of trying the facilities. */
static int put_selftests(struct doctor *doctor, struct refusal *refusal)
{
	const char *only = ((const struct doctor_options *)doctor->options->own)->only;
	struct selftest selftest;
	size_t failed = 0, tests = 0;

	if (selftest_find(&selftest, &doctor->host, refusal))
		return -1;
	for (size_t i = 0; i < nr_selftests; i++) {
		json_t *record;

		if (only && !list_has(only, selftest_name(i)))
			continue;
		record = selftest_run(&selftest, i);
		tests++;
		failed += !strcmp(json_string_value(json_object_get(record, "verdict")), "failed");
		put_record(doctor, record);
	}
	if (!failed)
		return 0;
	refuse(refusal, STATUS_UNEXPECTED, "option --selftest");
	because(refusal, "what %zu of %zu tests measured is not what is known", failed, tests);
	return instead(refusal, "send the records (--format json), with what /proc/cpuinfo says");
}

static void self_test(struct doctor *doctor, struct refusal *refusal)
{
	put_record(doctor, start_base(&doctor->host, "doctor"));
	put_record(doctor, processor_record(&doctor->processor, &doctor->host));
	put_record(doctor, kernel_record(&doctor->host));
	put_selftests(doctor, refusal);
	put_record(doctor, end_record(doctor, "done", refusal->asked[0] ? refusal->status : STATUS_DONE));
}

static void examine(struct doctor *doctor, struct refusal *refusal)
{
	doctor->findings = json_array();
	put_record(doctor, start_base(&doctor->host, "doctor"));
	put_record(doctor, processor_record(&doctor->processor, &doctor->host));
	put_record(doctor, kernel_record(&doctor->host));
	put_permissions(doctor);
	put_counters(doctor);
	put_facilities(doctor, refusal);
	put_record(doctor, diagnosis_record(doctor->findings));
	json_decref(doctor->findings);
	put_record(doctor, end_record(doctor, "done", refusal->asked[0] ? refusal->status : STATUS_DONE));
}

static void put_refusal(struct doctor *doctor, const struct refusal *refusal)
{
	put_record(doctor, record_error(refusal));
	put_record(doctor, end_record(doctor, "refused", refusal->status));
}

static int run(const struct options *options, struct refusal *refusal)
{
	const struct doctor_options *own = options->own;
	struct doctor examined = {.options = options};

	*refusal = (struct refusal){0};
	examined.began_ns = clock_ns(CLOCK_MONOTONIC);
	if (check_arguments(options, refusal) || stream_open_options(&examined.stream, options, refusal))
		return refusal->status;
	if (gather_facts(&examined, refusal))
		put_refusal(&examined, refusal);
	else
		(own->selftest ? self_test : examine)(&examined, refusal);
	if (stream_close(&examined.stream) && examined.stream.sink.error != EPIPE && !refusal->asked[0])
		sink_refusal(&examined.stream.sink, refusal);
	host_release(&examined.host);
	return refusal->asked[0] ? (int)refusal->status : STATUS_DONE;
}

static const struct option_row rows[] = {
	{0, "need", "NAMES", OPTION_TEXT, OWN(struct doctor_options, need), .again = AGAIN_JOINS,
	 .help = "try only these facilities (mem,branch); exit 2 if one does not work"},
	{0, "selftest", NULL, OPTION_FLAG, OWN(struct doctor_options, selftest),
	 .help = "measure a program whose counts are known, and compare; exit 4 if any differs"},
	{0, "only", "NAMES", OPTION_TEXT, OWN(struct doctor_options, only), .again = AGAIN_JOINS,
	 .help = "with --selftest: only these of its tests (counts,edges)"},
	{'v', "verbose", NULL, OPTION_FLAG, COMMON(verbose),
	 .help = "show every finding in the table, not only the summary"},
	{0},
};

static const struct command doctor = {
	.name = "doctor",
	.arguments = "[OPTIONS]",
	.help = "tries what this machine can do, and says why something does not work and what to do",
	.options = {rows, output_rows, format_rows, host_rows, machine_rows, help_rows},
	.own_size = sizeof(struct doctor_options),
	.run = run,
};
REGISTER_COMMAND(doctor);
