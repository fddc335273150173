// SPDX-License-Identifier: GPL-2.0-only
#include "tables/draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tables/names.h"

static const struct {
	size_t size;
	bool named; /* a row replaces one of the same name */
} kinds[DRAFT_KINDS] = {
	[DRAFT_EVENTS] = {sizeof(struct known_event), true},
	[DRAFT_ALIASES] = {sizeof(struct known_alias), false},
	[DRAFT_REGISTERS] = {sizeof(struct offcore_register), true},
	[DRAFT_REQUESTS] = {sizeof(struct offcore_part), true},
	[DRAFT_RESPONSES] = {sizeof(struct offcore_part), true},
	[DRAFT_PRESETS] = {sizeof(struct offcore_preset), true},
	[DRAFT_OFFCORE_ALIASES] = {sizeof(struct known_alias), false},
	[DRAFT_CONTRADICTIONS] = {sizeof(struct known_contradiction), true},
	[DRAFT_METRICS] = {sizeof(struct known_metric), true},
	[DRAFT_SHARES] = {sizeof(struct known_share), true},
	[DRAFT_IDENTITIES] = {sizeof(struct known_identity), true},
	[DRAFT_DATA_SOURCES] = {sizeof(struct known_data_source), false},
	[DRAFT_BRANCHES] = {sizeof(struct known_branch_kind), true},
	[DRAFT_UNITS] = {sizeof(struct known_unit), true},
	[DRAFT_PRECISE] = {sizeof(struct kernel_rule), false},
	[DRAFT_PLACED] = {sizeof(struct kernel_rule), false},
	[DRAFT_GENERIC] = {sizeof(struct known_generic), true},
	[DRAFT_ERRATA] = {sizeof(struct known_erratum), true},
	[DRAFT_MICROCODE] = {sizeof(struct known_microcode), false},
	[DRAFT_MODELS] = {sizeof(struct cpu_model), false},
	[DRAFT_GUIDE] = {sizeof(struct known_section), true},
	[DRAFT_PROCESSORS] = {sizeof(struct known_processor), false},
};

void *draft_row(const struct draft *draft, enum draft_kind kind, size_t i)
{
	return draft->rows[kind].bytes + i * kinds[kind].size;
}

static const char *name_of(const struct draft *draft, enum draft_kind kind, size_t i)
{
	return *(const char **)draft_row(draft, kind, i);
}

/* Names that are equal by name_order() have the same hash. */
static size_t hash_of(const char *name)
{
	__u32 hash = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ name_letter(*name)) * 16777619u;
	return hash;
}

/* If several rows have the same name, the first is found. */
static void note_row(const struct draft *draft, enum draft_kind kind, size_t i)
{
	const struct rows *rows = &draft->rows[kind];
	size_t at = hash_of(name_of(draft, kind, i)) & (rows->nr_found - 1);

	while (rows->found[at])
		at = (at + 1) & (rows->nr_found - 1);
	rows->found[at] = i + 1;
}

/* At least half of the places remain free. */
static void make_index(struct draft *draft, enum draft_kind kind)
{
	struct rows *rows = &draft->rows[kind];

	free(rows->found);
	rows->nr_found = 64;
	while (rows->nr_found < 4 * rows->nr)
		rows->nr_found *= 2;
	rows->found = xcalloc(rows->nr_found, sizeof(*rows->found));
	for (size_t i = 0; i < rows->nr; i++)
		note_row(draft, kind, i);
}

static void drop_index(struct draft *draft, enum draft_kind kind)
{
	free(draft->rows[kind].found);
	draft->rows[kind].found = NULL;
}

void *draft_find(struct draft *draft, enum draft_kind kind, const char *name)
{
	const struct rows *rows = &draft->rows[kind];

	if (!rows->found)
		make_index(draft, kind);
	for (size_t at = hash_of(name);; at++) {
		size_t row = rows->found[at & (rows->nr_found - 1)];

		if (!row)
			return NULL;
		if (!name_order(name_of(draft, kind, row - 1), name))
			return draft_row(draft, kind, row - 1);
	}
}

static void append_rows(struct draft *draft, enum draft_kind kind, const void *rows, size_t nr)
{
	struct rows *own = &draft->rows[kind];

	if (!nr)
		return;
	own->bytes = xfit(own->bytes, own->nr + nr, &own->room, kinds[kind].size);
	memcpy(draft_row(draft, kind, own->nr), rows, nr * kinds[kind].size);
	own->nr += nr;
	if (own->found && 2 * own->nr > own->nr_found)
		drop_index(draft, kind);
	for (size_t i = own->nr - nr; own->found && i < own->nr; i++)
		note_row(draft, kind, i);
}

void draft_put(struct draft *draft, enum draft_kind kind, const void *row)
{
	void *same = kinds[kind].named ? draft_find(draft, kind, *(const char *const *)row) : NULL;

	if (same)
		memcpy(same, row, kinds[kind].size);
	else
		append_rows(draft, kind, row, 1);
}

static void drop_row(struct draft *draft, enum draft_kind kind, size_t i)
{
	struct rows *rows = &draft->rows[kind];

	drop_index(draft, kind);
	rows->nr--;
	rows->inherited -= i < rows->inherited;
	memmove(draft_row(draft, kind, i), draft_row(draft, kind, i + 1), (rows->nr - i) * kinds[kind].size);
}

bool draft_drop(struct draft *draft, enum draft_kind kind, const char *name)
{
	const char *row = draft_find(draft, kind, name);

	if (row)
		drop_row(draft, kind, (row - draft->rows[kind].bytes) / kinds[kind].size);
	return row;
}

void draft_drop_aliases(struct draft *draft, enum draft_kind kind, const char *of)
{
	for (size_t i = draft->rows[kind].inherited; i-- > 0;)
		if (!name_order(((struct known_alias *)draft_row(draft, kind, i))->of, of))
			drop_row(draft, kind, i);
}

void draft_clear(struct draft *draft, enum draft_kind kind)
{
	drop_index(draft, kind);
	draft->rows[kind].nr = draft->rows[kind].inherited = 0;
}

/* The members of a CPU's tables that have the rows of each kind. */
#define ROWS_OF_CPU(DO, draft, owner)                                                                        \
	DO(draft, DRAFT_EVENTS, owner, events);                                                              \
	DO(draft, DRAFT_ALIASES, owner, aliases);                                                            \
	DO(draft, DRAFT_CONTRADICTIONS, owner, contradictions);                                              \
	DO(draft, DRAFT_METRICS, owner, metrics);                                                            \
	DO(draft, DRAFT_SHARES, owner, shares);                                                              \
	DO(draft, DRAFT_IDENTITIES, owner, identities);                                                      \
	DO(draft, DRAFT_DATA_SOURCES, owner, data_sources);                                                  \
	DO(draft, DRAFT_BRANCHES, owner, branches);                                                          \
	DO(draft, DRAFT_UNITS, owner, units);                                                                \
	DO(draft, DRAFT_MODELS, owner, models);                                                              \
	DO(draft, DRAFT_GUIDE, owner, guide);                                                                \
	DO(draft, DRAFT_PROCESSORS, owner, processors)
#define ROWS_OF_KERNEL(DO, draft, owner)                                                                     \
	DO(draft, DRAFT_PRECISE, owner, precise);                                                            \
	DO(draft, DRAFT_PLACED, owner, placed);                                                              \
	DO(draft, DRAFT_GENERIC, owner, generic);                                                            \
	DO(draft, DRAFT_ERRATA, owner, errata);                                                              \
	DO(draft, DRAFT_MICROCODE, owner, microcode)
#define ROWS_OF_OFFCORE(DO, draft, owner)                                                                    \
	DO(draft, DRAFT_REGISTERS, owner, registers);                                                        \
	DO(draft, DRAFT_REQUESTS, owner, requests);                                                          \
	DO(draft, DRAFT_RESPONSES, owner, responses);                                                        \
	DO(draft, DRAFT_PRESETS, owner, presets);                                                            \
	DO(draft, DRAFT_OFFCORE_ALIASES, owner, aliases)

#define COPY(draft, kind, owner, member) append_rows(draft, kind, (owner).member, (owner).nr_##member)

void draft_begin(struct draft *draft, const struct cpu_events *base)
{
	*draft = (struct draft){.files = json_object()};
	if (!base)
		return;
	draft->cpu = *base;
	ROWS_OF_CPU(COPY, draft, *base);
	if (base->kernel) {
		draft->kernel = *base->kernel;
		ROWS_OF_KERNEL(COPY, draft, *base->kernel);
	}
	if (base->offcore) {
		draft->offcore = *base->offcore;
		ROWS_OF_OFFCORE(COPY, draft, *base->offcore);
	}
	for (enum draft_kind kind = 0; kind < DRAFT_KINDS; kind++)
		draft->rows[kind].inherited = draft->rows[kind].nr;
}

void draft_release(struct draft *draft)
{
	for (enum draft_kind kind = 0; kind < DRAFT_KINDS; kind++) {
		drop_index(draft, kind);
		free(draft->rows[kind].bytes);
	}
	json_decref(draft->files);
	*draft = (struct draft){0};
}

/* --- sealing ---------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return name_order(*(const char *const *)a, *(const char *const *)b);
}

/* An alias with two owners is a fault. By this order it is always reported in the same way. */
static int by_name_and_owner(const void *a, const void *b)
{
	const struct known_alias *x = a, *y = b;
	int order = name_order(x->name, y->name);

	return order ? order : name_order(x->of, y->of);
}

/* Single bits first, in ascending order; then composites. */
static int by_bits(const void *a, const void *b)
{
	const struct offcore_part *x = a, *y = b;
	bool composed_x = x->bits & (x->bits - 1), composed_y = y->bits & (y->bits - 1);

	if (composed_x != composed_y)
		return composed_x ? 1 : -1;
	return (x->bits > y->bits) - (x->bits < y->bits);
}

static int by_code(const void *a, const void *b)
{
	return ((const struct known_data_source *)a)->code - ((const struct known_data_source *)b)->code;
}

static void sort_rows(struct draft *draft, enum draft_kind kind, int (*order)(const void *, const void *))
{
	drop_index(draft, kind);
	if (draft->rows[kind].nr)
		qsort(draft->rows[kind].bytes, draft->rows[kind].nr, kinds[kind].size, order);
}

/* Sets an array of a struct, and its length, to the rows of the draft. */
#define SEAL(draft, kind, owner, member)                                                                     \
	((owner).member = (const void *)(draft)->rows[kind].bytes,                                           \
	 (owner).nr_##member = (draft)->rows[kind].nr)

void draft_seal(struct draft *draft)
{
	sort_rows(draft, DRAFT_EVENTS, by_name);
	sort_rows(draft, DRAFT_ALIASES, by_name_and_owner);
	sort_rows(draft, DRAFT_OFFCORE_ALIASES, by_name_and_owner);
	sort_rows(draft, DRAFT_REQUESTS, by_bits);
	sort_rows(draft, DRAFT_RESPONSES, by_bits);
	sort_rows(draft, DRAFT_DATA_SOURCES, by_code);
	ROWS_OF_CPU(SEAL, draft, draft->cpu);
	ROWS_OF_KERNEL(SEAL, draft, draft->kernel);
	ROWS_OF_OFFCORE(SEAL, draft, draft->offcore);
	draft->cpu.kernel = draft->kernel.source ? &draft->kernel : NULL;
	draft->cpu.offcore = draft->offcore.nr_registers ? &draft->offcore : NULL;
}
