// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes names from perf's own files (--pmu-events): an input is several files (see files.h), of
 * all the forms that are read. The events that they name are then planned. No crash, no leak, and
 * each refusal has a reason.
 */
#include "files.h"
#include "option/options.h"
#include "plan/plan.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char *const places[] = {
	"mapfile.csv",
	"cpu/core.json", /* a row's Filename: "cpu" */
	"cpu/cache.json",
	"atom.json", /* "/atom.json" */
	"arch/x86/mapfile.csv",
	"arch/x86/cpu/core.json",
	"list.json",
};
static const char *const folders[] = {"cpu", "arch", "arch/x86", "arch/x86/cpu", NULL};
#define LIST (sizeof(places) / sizeof(places[0]) - 1) /* output of perf list -j, read alone */
static struct files files = {.places = places, .nr = LIST + 1};
static struct host host;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *root = getenv("NHMTAP_FUZZ_HOST");

	if (!root || host_gather(&host, root)) {
		fprintf(stderr, "NHMTAP_FUZZ_HOST must name the files of a known CPU\n");
		exit(1);
	}
	host.events = NULL; /* the names of the tables would take precedence */
	files_open(&files, folders);
	return 0;
}

static void expect_reason(const struct refusal *refusal)
{
	if (!refusal->asked[0] || !refusal->why[0] || !refusal->status)
		abort();
}

static void ask(const char *name)
{
	struct options options = {.events = name, .host_root = ""};
	struct refusal refusal = {0};
	struct plan plan = {0};

	if (plan_explain(&plan, &options, &host, &refusal))
		expect_reason(&refusal);
	plan_release(&plan);
}

#define ASKED 4 /* per input: a plan takes longer than the rest */

/* Expects that each name is found. */
static void check(const struct pmu_events *events)
{
	for (size_t i = 0; i < events->nr; i++) {
		const struct pmu_event *event = &events->list[i];

		if (!event->name[0] || !event->terms || !pmu_event_find(events, event->name, event->pmu))
			abort();
		if (i < ASKED)
			ask(event->name);
	}
	ask("cpu/no.such.name/");
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct refusal refusal = {0};
	const char *path;

	files_write(&files, data, size);
	path = files.written == 1ULL << LIST ? files_path(&files, places[LIST]) : files.folder;
	if (host_add_pmu_events(&host, path, &refusal))
		expect_reason(&refusal);
	else
		check(&host.pmu_events);
	pmu_events_release(&host.pmu_events);
	files_remove(&files);
	return 0;
}
