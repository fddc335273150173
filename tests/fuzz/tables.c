// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes folders of events: an input is several files (see files.h). No crash, no leak, and either
 * tables or a refusal with a reason.
 */
#include "files.h"
#include "base/json_schema.h"
#include "tables/tables.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* Each CPU in cpus.json needs a folder: the CPU of this folder can be changed or defined anew. */
static const char *const places[] = {
	"cpus.json",
	"sources.json",
	"nehalem-ep/mine.json",
	"nehalem-ep/contradictions.json",
	"nehalem-ep/data_source.json",
	"nehalem-ep/kernel.json",
	"nehalem-ep/lbr.json",
	"nehalem-ep/metrics.json",
	"nehalem-ep/msr.json",
	"nehalem-ep/offcore.json",
	"generic/metrics.json",
	"nehalem-ep/escr.json",
};
static const char *const folders[] = {"nehalem-ep", "generic", NULL};
static struct files files = {.places = places, .nr = sizeof(places) / sizeof(places[0])};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	files_open(&files, folders);
	json_schema_open(
		"schema.json"); /* kept open: reading it for each input would take longer than all else */
	return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct refusal refusal = {0};
	struct tables tables = {0};

	files_write(&files, data, size);
	if (tables_load(&tables, files.folder, &refusal) && (!refusal.asked[0] || !refusal.why[0]))
		abort();
	tables_release(&tables);
	files_remove(&files);
	return 0;
}
