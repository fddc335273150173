// SPDX-License-Identifier: GPL-2.0-only
#include "tables/tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/copied.h"
#include "base/guarded.h"
#include "base/memory.h"
#include "tables/loader.h"

/* --- CPUs ------------------------------------------------------------------------------------- */

/* Lists a folder: see copied_list(). */
static char *list_folder(const struct loader *loader, const char *folder)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", loader->folder, folder);
	return copied_list(path, COPIED_WAIT_NS);
}

static bool is_table(const char *file, char *stem, size_t size)
{
	const char *dot = strrchr(file, '.');

	snprintf(stem, size, "%.*s", dot ? (int)(dot - file) : 0, file);
	return file[0] != '.' && dot && !strcmp(dot, ".json");
}

static int load_folder(struct loader *loader, struct draft *draft, const char *folder)
{
	char *files = list_folder(loader, folder), stem[NAME_MAX + 1];
	int err = 0;

	if (!files)
		return loader_fault(loader, folder, "", "can't be read: %s", guarded_why(errno));
	for (const char *file = files; *file && !err; file += strlen(file) + 1) {
		if (!is_table(file, stem, sizeof(stem)))
			continue;
		snprintf(loader->file, sizeof(loader->file), "%s/%s", folder, file);
		err = draft_load_table(loader, draft, stem);
	}
	free(files);
	return err;
}

/* Loads a CPU's folder into its draft, seals and checks it. */
static int load_cpu(struct loader *loader, struct draft *draft)
{
	if (load_folder(loader, draft, draft->cpu.name))
		return -1;
	draft_seal(draft);
	return draft_check(loader, draft);
}

static struct draft *new_draft(struct loader *loader, const struct cpu_events *base)
{
	struct draft *draft = xmalloc(sizeof(*draft));

	draft_begin(draft, base);
	return *xappend(loader->drafts, loader->nr_drafts) = draft;
}

static int refuse_without(struct loader *loader, const struct draft *draft, const char *gone)
{
	return FAULT(loader, draft->cpu.name, "is without %s, which it does not inherit", gone);
}

/* The unit of "UNIT/KIND" if it has ESCRs, else NULL. Kinds of other units can't be removed, because counters
 * are numbered in the order of the kinds. */
static struct known_unit *unit_of_kind(const struct draft *draft, const char *name)
{
	for (size_t u = 0; u < draft->rows[DRAFT_UNITS].nr; u++) {
		struct known_unit *unit = draft_row(draft, DRAFT_UNITS, u);
		size_t length = strlen(unit->name);

		if (unit->counters && !strncmp(unit->name, name, length) && name[length] == '/')
			return unit;
	}
	return NULL;
}

/* Removes a kind from a copy of the list: the list itself belongs to the other CPU. */
static int take_kind_away(struct loader *loader, struct draft *draft, const char *gone)
{
	struct known_unit *unit = unit_of_kind(draft, gone);
	struct unit_kind *rest = unit ? loader_keep(loader, unit->nr_kinds, sizeof(*rest)) : NULL;
	size_t nr = 0;

	for (size_t k = 0; unit && k < unit->nr_kinds; k++)
		if (strcmp(unit->kinds[k].name, strchr(gone, '/') + 1))
			rest[nr++] = unit->kinds[k];
	if (!unit || nr == unit->nr_kinds)
		return refuse_without(loader, draft, gone);
	unit->kinds = rest;
	unit->nr_kinds = nr;
	return 0;
}

/* Removes what "without" lists: it is not inherited. */
static int take_away(struct loader *loader, struct draft *draft, const json_t *without)
{
	static const struct {
		const char *field;
		enum draft_kind kind, aliases;
	} kinds[] = {
		{"events", DRAFT_EVENTS, DRAFT_ALIASES},
		{"metrics", DRAFT_METRICS, DRAFT_KINDS},
		{"shares", DRAFT_SHARES, DRAFT_KINDS},
		{"identities", DRAFT_IDENTITIES, DRAFT_KINDS},
		{"contradictions", DRAFT_CONTRADICTIONS, DRAFT_KINDS},
		{"requests", DRAFT_REQUESTS, DRAFT_OFFCORE_ALIASES},
		{"responses", DRAFT_RESPONSES, DRAFT_OFFCORE_ALIASES},
	};
	const json_t *name;
	size_t i;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		json_array_foreach(json_object_get(without, kinds[k].field), i, name) {
			const char *gone = json_string_value(name);

			if (!draft_drop(draft, kinds[k].kind, gone))
				return refuse_without(loader, draft, gone);
			if (kinds[k].aliases != DRAFT_KINDS)
				draft_drop_aliases(draft, kinds[k].aliases, gone);
		}
	json_array_foreach(json_object_get(without, "kinds"), i, name)
		if (take_kind_away(loader, draft, json_string_value(name)))
			return -1;
	return 0;
}

static bool is_folder(const struct loader *loader, const char *name)
{
	char path[2 * PATH_MAX];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%s", loader->folder, name);
	if (copied_stat(path, &status, COPIED_WAIT_NS))
		return errno == ETIMEDOUT; /* reading it says so */
	return S_ISDIR(status.st_mode);
}

static void take_load_latency(struct draft *draft, const json_t *event)
{
	if (!event)
		return;
	draft->cpu.load_latency = entry_config(event);
	draft->cpu.latency_least = entry_number(event, "least", 0);
	draft->cpu.latency_most = entry_number(event, "most", 0);
	draft->cpu.latency_source = entry_text(event, "source");
}

static void take_accesses(struct draft *draft, const json_t *accesses)
{
	if (!accesses)
		return;
	draft->cpu.loads = entry_text(accesses, "loads");
	draft->cpu.stores = entry_text(accesses, "stores");
}

/* Defines a CPU by a row of cpus.json. */
static int define_cpu(struct loader *loader, const json_t *row)
{
	const char *parent = entry_text(row, "inherits");
	const struct cpu_events *base = parent ? loader_find_cpu(loader, parent) : NULL;
	const json_t *pattern, *model, *section, *cmask = json_object_get(row, "cmask");
	const char *facility;
	struct draft *draft;
	size_t i;

	if (parent && !base)
		return FAULT(loader, entry_text(row, "name"),
			     "inherits \"%s\", which does not stand before it, nor is built in", parent);
	draft = new_draft(loader, base);
	draft->cpu.name = entry_text(row, "name");
	draft->cpu.title = entry_text(row, "title");
	draft->cpu.vendor = entry_text(row, "vendor");
	draft->cpu.libpfm4 = entry_text(row, "libpfm4");
	draft->cpu.third_level_cache = entry_flag(row, "third_level_cache");
	draft->cpu.perfmon = entry_number(row, "perfmon", draft->cpu.perfmon);
	draft->cpu.branch_depth = entry_number(row, "branch_depth", draft->cpu.branch_depth);
	draft->cpu.general_counters = entry_number(row, "general_counters", 0);
	take_load_latency(draft, json_object_get(row, "load_latency"));
	take_accesses(draft, json_object_get(row, "accesses"));
	if (cmask) {
		draft->cpu.cmask_most = entry_number(cmask, "most", 0);
		draft->cpu.cmask_source = entry_text(cmask, "source");
	}
	if (json_object_get(row, "precise_store"))
		draft->cpu.precise_store = entry_config(json_object_get(row, "precise_store"));
	draft->cpu.general_counters_smt = entry_number(row, "general_counters_smt", 0);
	draft->cpu.fixed_counters = entry_number(row, "fixed_counters", 0);
	draft_clear(draft, DRAFT_PROCESSORS);
	json_array_foreach(json_object_get(row, "processors"), i, pattern) {
		struct known_processor known = {json_string_value(pattern)};

		draft_put(draft, DRAFT_PROCESSORS, &known);
	}
	draft_clear(draft, DRAFT_MODELS);
	json_array_foreach(json_object_get(row, "models"), i, model) {
		struct cpu_model known = {entry_number(row, "family", 0),
					  strtoull(json_string_value(model), NULL, 16)};

		draft_put(draft, DRAFT_MODELS, &known);
	}
	json_object_foreach(json_object_get(row, "guide"), facility, section) {
		struct known_section known = {facility, json_string_value(section)};

		draft_put(draft, DRAFT_GUIDE, &known);
	}
	if (!is_folder(loader, draft->cpu.name))
		return FAULT(loader, draft->cpu.name, "has no folder %s/", draft->cpu.name);
	if (take_away(loader, draft, json_object_get(row, "without")))
		return -1;
	return load_cpu(loader, draft);
}

static bool is_defined(const json_t *rows, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
		if (!strcmp(entry_text(row, "name"), name))
			return true;
	return false;
}

/* Loads a folder that has no row in cpus.json. */
static int load_other_folder(struct loader *loader, const char *name)
{
	const struct cpu_events *base = loader_find_cpu(loader, name);

	if (!strcmp(name, GENERIC))
		return loader_has_file(loader, GENERIC "/metrics.json")
			       ? draft_load_table(loader, &loader->generic, "metrics")
			       : 0;
	if (!base)
		return loader_fault(loader, name, "",
				    "is a folder of no CPU: neither cpus.json nor the program has one of "
				    "this name");
	return load_cpu(loader, new_draft(loader, base));
}

static int load_other_folders(struct loader *loader, const json_t *rows)
{
	char *names = list_folder(loader, "");
	int err = 0;

	if (!names) {
		refuse(loader->refusal, STATUS_USAGE, "option --events-dir '%.300s'", loader->folder);
		loader->refusal->error = errno;
		return because(loader->refusal, "it can't be read: %s", guarded_why(errno));
	}
	for (const char *name = names; *name && !err; name += strlen(name) + 1)
		if (!strchr("._", name[0]) && is_folder(loader, name) && !is_defined(rows, name))
			err = load_other_folder(loader, name);
	free(names);
	return err;
}

/* Checks that no processor model belongs to two CPUs, among those of the folder and the built-in ones that
 * the folder does not replace. */
static int check_models(struct loader *loader)
{
	for (size_t i = 0; i < loader->nr_drafts; i++) {
		const struct cpu_events *cpu = &loader->drafts[i]->cpu;

		for (size_t j = 0; j < i + nr_known_cpus; j++) {
			const struct cpu_events *other = j < i ? &loader->drafts[j]->cpu : &known_cpus[j - i];

			if (j >= i && loader_find_cpu(loader, other->name) != other)
				continue;
			for (size_t m = 0; m < cpu->nr_models * other->nr_models; m++) {
				const struct cpu_model *a = &cpu->models[m / other->nr_models];
				const struct cpu_model *b = &other->models[m % other->nr_models];

				if (!strcmp(cpu->vendor, other->vendor) && a->family == b->family &&
				    a->model == b->model &&
				    cpu->third_level_cache == other->third_level_cache)
					return loader_fault(loader, "cpus.json", cpu->name,
							    "model 0x%X is already %s", a->model,
							    other->name);
			}
		}
	}
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int load_sources(struct loader *loader)
{
	const json_t *table, *entry;
	size_t i;

	for (i = 0; i < nr_known_sources; i++)
		json_object_set_new(loader->sources, known_sources[i].key, json_true());
	if (!loader_has_file(loader, "sources.json"))
		return 0;
	table = loader_read_table(loader, "sources");
	if (!table || entries_check(loader, table, "key"))
		return -1;
	json_array_foreach(table, i, entry)
		json_object_set_new(loader->sources, entry_text(entry, "key"), json_true());
	return 0;
}

static int load_all(struct loader *loader)
{
	const json_t *rows = NULL, *row;
	size_t i;

	if (load_sources(loader))
		return -1;
	if (loader_has_file(loader, "cpus.json")) {
		rows = loader_read_table(loader, "cpus");
		if (!rows || entries_check(loader, rows, "name"))
			return -1;
	}
	if (load_other_folders(loader, rows))
		return -1;
	json_array_foreach(rows, i, row) {
		snprintf(loader->file, sizeof(loader->file), "cpus.json");
		if (define_cpu(loader, row))
			return -1;
	}
	draft_seal(&loader->generic);
	return draft_check(loader, &loader->generic) || check_models(loader) ? -1 : 0;
}

int tables_load(struct tables *tables, const char *folder, struct refusal *refusal)
{
	const struct cpu_events generic = {
		.name = GENERIC, .metrics = generic_metrics, .nr_metrics = nr_generic_metrics};
	struct loader *loader = xcalloc(1, sizeof(*loader));

	*tables = (struct tables){.loader = loader};
	snprintf(loader->folder, sizeof(loader->folder), "%s", folder);
	loader->schema = json_schema_open("schema.json");
	loader->refusal = refusal;
	loader->documents = json_array();
	loader->sources = json_object();
	draft_begin(&loader->generic, &generic);
	if (load_all(loader))
		return -1;
	tables->cpus = xcalloc(loader->nr_drafts + 1, sizeof(*tables->cpus));
	for (size_t i = 0; i < loader->nr_drafts; i++)
		tables->cpus[tables->nr_cpus++] = loader->drafts[i]->cpu;
	tables->metrics = loader->generic.cpu.metrics;
	tables->nr_metrics = loader->generic.cpu.nr_metrics;
	return 0;
}

void tables_release(struct tables *tables)
{
	struct loader *loader = tables->loader;

	if (!loader)
		return;
	for (size_t i = 0; i < loader->nr_drafts; i++) {
		draft_release(loader->drafts[i]);
		free(loader->drafts[i]);
	}
	for (size_t i = 0; i < loader->nr_blocks; i++)
		free(loader->blocks[i]);
	draft_release(&loader->generic);
	json_schema_close(loader->schema);
	json_decref(loader->documents);
	json_decref(loader->sources);
	free(loader->drafts);
	free(loader->blocks);
	free(loader);
	free(tables->cpus);
	*tables = (struct tables){0};
}
