// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/list.h"
#include "base/memory.h"
#include "tables/compose.h"
#include "tables/formula.h"
#include "tables/loader.h"
#include "tables/names.h"

/* Whether it is the draft of metrics over perf's own events, which belong to no CPU. */
static bool is_generic(const struct draft *draft)
{
	return !strcmp(draft->cpu.name, GENERIC);
}

/* Has the following faults reported for this table of the CPU, even if the CPU inherits the rows. */
static void blame(struct loader *loader, struct draft *draft, const char *table)
{
	snprintf(loader->file, sizeof(loader->file), "%s/%s.json", draft->cpu.name, table);
}

/* Rows are sorted, so those of the same name are neighbours. */
static int check_aliases(struct loader *loader, struct draft *draft, enum draft_kind kind,
			 const enum draft_kind *owners, size_t nr_owners)
{
	for (size_t i = 0; i < draft->rows[kind].nr; i++) {
		const struct known_alias *alias = draft_row(draft, kind, i), *before = alias - 1;
		const char *file = kind == DRAFT_ALIASES ? draft_file_of(draft, alias->of) : loader->file;

		for (size_t j = 0; j < nr_owners; j++)
			if (draft_find(draft, owners[j], alias->name))
				return loader_fault(loader, file, alias->of,
						    "alias %s is already a name of %s", alias->name,
						    alias->name);
		if (i && !name_order(alias->name, before->name))
			return loader_fault(loader, file, alias->of, "alias %s is already a name of %s",
					    alias->name, before->of);
	}
	return 0;
}

/* Compares encodings: 0 if they are the same. Umasks about different fields may have the same one, as one
 * event is the usual value of each. */
static int encoding_order(const struct known_event *a, const struct known_event *b)
{
	if (a->config != b->config)
		return a->config < b->config ? -1 : 1;
	if (a->config1 != b->config1)
		return a->config1 < b->config1 ? -1 : 1;
	if (a->counters != b->counters)
		return a->counters < b->counters ? -1 : 1;
	if (a->precise != b->precise)
		return a->precise < b->precise ? -1 : 1;
	if (a->umask_field != b->umask_field)
		return a->umask_field < b->umask_field ? -1 : 1;
	return (a->fixed_counter > b->fixed_counter) - (a->fixed_counter < b->fixed_counter);
}

/* By encoding; events of the same encoding are in the order of their rows. */
static int by_encoding(const void *a, const void *b)
{
	const struct known_event *x = *(const struct known_event *const *)a;
	const struct known_event *y = *(const struct known_event *const *)b;
	int order = encoding_order(x, y);

	return order ? order : (x > y) - (x < y);
}

static int check_encodings(struct loader *loader, const struct draft *draft)
{
	size_t nr = draft->rows[DRAFT_EVENTS].nr;
	const struct known_event **events = xmalloc((nr + 1) * sizeof(*events));
	int err = 0;

	for (size_t i = 0; i < nr; i++)
		events[i] = draft_row(draft, DRAFT_EVENTS, i);
	qsort(events, nr, sizeof(*events), by_encoding);
	for (size_t i = 1; i < nr && !err; i++) {
		/* If only one of them is from the folder, the fault is reported for that one. */
		bool first = draft_is_from_folder(draft, events[i - 1]->name);

		if (!encoding_order(events[i], events[i - 1]))
			err = FAULT_OF(loader, draft, events[first ? i - 1 : i]->name,
				       "is encoded exactly as %s; make it an alias",
				       events[first ? i : i - 1]->name);
	}
	free(events);
	return err;
}

static int check_event_in(struct loader *loader, struct draft *draft, const struct known_event *event)
{
	const char *name = event->name;

	for (size_t i = 0; i < draft->rows[DRAFT_REGISTERS].nr; i++) {
		const struct offcore_register *reg = draft_row(draft, DRAFT_REGISTERS, i);
		size_t length = strlen(reg->name);

		if (!strncasecmp(name, reg->name, length) && (!name[length] || name[length] == '.'))
			return FAULT_OF(loader, draft, name,
					"is composed from offcore.json and needs no entry");
	}
	if (event->default_period < draft->kernel.lowest_period)
		return FAULT_OF(loader, draft, name,
				"\"period\" %llu is refused by the kernel of %s: at least %llu",
				(unsigned long long)event->default_period, draft->cpu.name,
				(unsigned long long)draft->kernel.lowest_period);
	return 0;
}

/* Whether an event of a formula can be counted: it is one of the CPU's or perf's own, modifiers ignored. */
static bool counts(struct draft *draft, const char *name)
{
	const struct cpu_events *cpu = is_generic(draft) ? NULL : &draft->cpu;
	char plain[200], *colon;
	struct composed composed;
	struct refusal ignored;
	__u64 config;

	snprintf(plain, sizeof(plain), "%s", name);
	if (compose_event(cpu, plain, &composed, &ignored) == 1)
		return true;
	colon = strrchr(plain, ':');
	if (colon)
		*colon = '\0';
	return compose_event(cpu, plain, &composed, &ignored) == 1 || generic_event_find(plain) ||
	       !cache_event_find(plain, &config);
}

static int check_formula(struct loader *loader, struct draft *draft, const char *label, const char *field,
			 const char *text)
{
	struct formula formula;
	char why[128];
	size_t events = 0;
	int err = 0;

	if (formula_parse(&formula, text, why, sizeof(why)))
		return FAULT(loader, label, "\"%s\" %s", field, why);
	for (size_t i = 0; i < formula.nr_inputs && !err; i++) {
		if (!strcmp(formula.inputs[i], FORMULA_DURATION))
			continue;
		events++;
		if (!counts(draft, formula.inputs[i]))
			err = FAULT(loader, label, "\"%s\" names %s, which %s does not count", field,
				    formula.inputs[i], is_generic(draft) ? "perf" : draft->cpu.name);
	}
	if (!err && !events)
		err = FAULT(loader, label, "\"%s\" names no event", field);
	formula_release(&formula);
	return err;
}

static int check_metric(struct loader *loader, struct draft *draft, const struct known_metric *metric)
{
	return check_formula(loader, draft, metric->name, "formula", metric->formula);
}

static const struct known_share *share_of(struct draft *draft, const char *name)
{
	return name ? draft_find(draft, DRAFT_SHARES, name) : NULL;
}

static bool has_parts(struct draft *draft, const char *name)
{
	for (size_t i = 0; i < draft->rows[DRAFT_SHARES].nr; i++) {
		const struct known_share *share = draft_row(draft, DRAFT_SHARES, i);

		if (share->parent && !strcmp(share->parent, name) && !share->beside)
			return true;
	}
	return false;
}

/* Whether the parents of a share lead to the whole. */
static bool leads_to_whole(struct draft *draft, const struct known_share *share)
{
	for (size_t i = 0; share && i < draft->rows[DRAFT_SHARES].nr; i++) {
		if (!share->parent)
			return true;
		share = share_of(draft, share->parent);
	}
	return false;
}

static int check_share(struct loader *loader, struct draft *draft, const struct known_share *share)
{
	if (share->parent && !share_of(draft, share->parent))
		return FAULT(loader, share->name, "\"parent\" names %s, which does not exist", share->parent);
	if (!leads_to_whole(draft, share))
		return FAULT(loader, share->name, "\"parent\" leads back to it");
	if (share->formula)
		return check_formula(loader, draft, share->name, "formula", share->formula);
	if (share->of_time || (share->parent && has_parts(draft, share->name)))
		return 0;
	return FAULT(loader, share->name, "has neither \"formula\" nor parts");
}

static int check_shares(struct loader *loader, struct draft *draft)
{
	size_t wholes = 0;

	for (size_t i = 0; i < draft->rows[DRAFT_SHARES].nr; i++) {
		const struct known_share *share = draft_row(draft, DRAFT_SHARES, i);

		if (check_share(loader, draft, share))
			return -1;
		wholes += !share->parent;
	}
	return draft->rows[DRAFT_SHARES].nr && wholes != 1
		       ? FAULT(loader, "", "has %zu shares without a \"parent\", and must have one", wholes)
		       : 0;
}

static int check_identity(struct loader *loader, struct draft *draft, const struct known_identity *identity)
{
	char name[64];
	size_t length;

	for (const char *at = NULL; (at = list_next(identity->withdraws, at, &length));) {
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		if (!share_of(draft, name))
			return FAULT(loader, identity->name, "\"withdraws\" names %s, which does not exist",
				     name);
	}
	return check_formula(loader, draft, identity->name, "left", identity->left) ||
			       check_formula(loader, draft, identity->name, "right", identity->right)
		       ? -1
		       : 0;
}

static int check_part_names(struct loader *loader, struct draft *draft, const char *preset, const char *names,
			    enum draft_kind kind)
{
	char name[64];
	size_t length;

	for (const char *at = NULL; (at = list_next(names, at, &length));) {
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		if (!draft_find(draft, kind, name))
			return FAULT(loader, preset, "names %s, which does not exist", name);
	}
	return 0;
}

static int check_presets(struct loader *loader, struct draft *draft)
{
	for (size_t i = 0; i < draft->rows[DRAFT_PRESETS].nr; i++) {
		const struct offcore_preset *preset = draft_row(draft, DRAFT_PRESETS, i);

		if (check_part_names(loader, draft, preset->name, preset->requests, DRAFT_REQUESTS) ||
		    check_part_names(loader, draft, preset->name, preset->responses, DRAFT_RESPONSES))
			return -1;
	}
	return 0;
}

static int check_accesses(struct loader *loader, struct draft *draft)
{
	const char *const names[] = {draft->cpu.loads, draft->cpu.stores};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i] && !draft_find(draft, DRAFT_EVENTS, names[i]))
			return loader_fault(loader, "cpus.json", draft->cpu.name,
					    "\"accesses\" names %s, which is no event of the CPU", names[i]);
	return 0;
}

int draft_check(struct loader *loader, struct draft *draft)
{
	static const enum draft_kind events[] = {DRAFT_EVENTS};
	static const enum draft_kind parts[] = {DRAFT_REGISTERS, DRAFT_REQUESTS, DRAFT_RESPONSES};

	if (!is_generic(draft) && !draft->cpu.nr_events && !draft->cpu.nr_units)
		return loader_fault(loader, draft->cpu.name, "", "has neither events nor units");
	if (draft->cpu.nr_events && !draft->cpu.general_counters)
		return loader_fault(loader, "cpus.json", draft->cpu.name,
				    "has events, but \"general_counters\" is 0");
	blame(loader, draft, "offcore");
	if (check_aliases(loader, draft, DRAFT_ALIASES, events, 1) ||
	    check_aliases(loader, draft, DRAFT_OFFCORE_ALIASES, parts, 3) || check_presets(loader, draft))
		return -1;
	for (size_t i = 0; i < draft->rows[DRAFT_EVENTS].nr; i++)
		if (check_event_in(loader, draft, draft_row(draft, DRAFT_EVENTS, i)))
			return -1;
	if (check_encodings(loader, draft) || check_accesses(loader, draft))
		return -1;
	blame(loader, draft, "metrics");
	for (size_t i = 0; i < draft->rows[DRAFT_METRICS].nr; i++)
		if (check_metric(loader, draft, draft_row(draft, DRAFT_METRICS, i)))
			return -1;
	blame(loader, draft, "accounting");
	if (check_shares(loader, draft))
		return -1;
	blame(loader, draft, "identities");
	for (size_t i = 0; i < draft->rows[DRAFT_IDENTITIES].nr; i++)
		if (check_identity(loader, draft, draft_row(draft, DRAFT_IDENTITIES, i)))
			return -1;
	return 0;
}
