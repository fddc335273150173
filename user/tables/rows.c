// SPDX-License-Identifier: GPL-2.0-only
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tables/config.h"
#include "tables/row_layout.h"
#include "tables/loader.h"
#include "tables/names.h"

#define OFFCORE_BITS 64

/* --- what rows have in common ----------------------------------------------------------------- */

/* The bits of "counters"; if it is missing, all of the CPU's. -1 with the refusal. */
static long counters_of(struct loader *loader, const struct draft *draft, const char *label,
			const json_t *entry)
{
	const json_t *list = json_object_get(entry, "counters"), *item;
	json_int_t last = -1, fixed = entry_number(entry, "fixed_counter", -1);
	long bits = list ? 0 : (1L << draft->cpu.general_counters) - 1;
	size_t i;

	json_array_foreach(list, i, item) {
		json_int_t counter = json_integer_value(item);

		if (counter >= draft->cpu.general_counters)
			return FAULT(loader, label, "counter %d does not exist: %s has %u", (int)counter,
				     draft->cpu.name, draft->cpu.general_counters);
		if (counter <= last)
			return FAULT(loader, label, "\"counters\" must ascend");
		last = counter;
		bits |= 1L << counter;
	}
	if (fixed >= (json_int_t)draft->cpu.fixed_counters)
		return FAULT(loader, label, "fixed counter %d does not exist: %s has %u", (int)fixed,
			     draft->cpu.name, draft->cpu.fixed_counters);
	return bits;
}

__u64 entry_config(const json_t *entry)
{
	return entry_hex(entry, "code") | entry_hex(entry, "umask") << 8 |
	       (entry_flag(entry, "edge") ? CONFIG_EDGE : 0) | (entry_flag(entry, "any") ? CONFIG_ANY : 0) |
	       (entry_flag(entry, "inv") ? CONFIG_INV : 0) |
	       (__u64)entry_number(entry, "cmask", 0) << CONFIG_CMASK_SHIFT;
}

/* Whether the rows from `first` on have the alias with the same owner. */
static bool has_alias(const struct draft *draft, enum draft_kind kind, size_t first,
		      const struct known_alias *wanted)
{
	for (size_t i = first; i < draft->rows[kind].nr; i++) {
		const struct known_alias *alias = draft_row(draft, kind, i);

		if (!name_order(alias->name, wanted->name) && !name_order(alias->of, wanted->of))
			return true;
	}
	return false;
}

/* Replaces the aliases of a row. */
static void put_aliases(struct draft *draft, enum draft_kind kind, const json_t *entry)
{
	const char *name = entry_text(entry, "name"), *source;
	json_t *names, *alias;
	size_t i, first;

	draft_drop_aliases(draft, kind, name);
	first = draft->rows[kind].nr;
	json_object_foreach(json_object_get(entry, "aliases"), source, names)
		json_array_foreach(names, i, alias) {
			struct known_alias row = {json_string_value(alias), name, source};

			if (!has_alias(draft, kind, first, &row)) /* two sources may use the same spelling */
				draft_put(draft, kind, &row);
		}
}

/* Adds a row of this layout for each entry. */
static void put_each(struct loader *loader, struct draft *draft, enum draft_kind kind,
		     const struct row_layout *layout, const json_t *entries)
{
	void *row = loader_keep(loader, 1, layout->size);
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		memset(row, 0, layout->size);
		row_read(loader, layout, entry, row);
		draft_put(draft, kind, row);
	}
}

/* --- the tables of a CPU ---------------------------------------------------------------------- */

static int check_event(struct loader *loader, const struct draft *draft, const json_t *entry,
		       const struct known_event *event)
{
	bool latency = is_load_latency(&draft->cpu, event->config);

	if (!event->counters && event->fixed_counter < 0)
		return FAULT(loader, event->name, "no counter can count it");
	if (!(event->config & CONFIG_EVENT) && event->fixed_counter < 0)
		return FAULT(loader, event->name, "code 0x00 is only perf's name for a fixed counter");
	if (event->config & CONFIG_ANY && event->precise)
		return FAULT(loader, event->name, "the kernel refuses \"any\" in a PEBS event");
	if (!json_object_get(entry, "threshold") != !latency)
		return FAULT(loader, event->name,
			     "\"threshold\" belongs to the event of \"load_latency\", and to nothing else");
	if (latency && event->config & (CONFIG_CMASK | CONFIG_INV))
		return FAULT(loader, event->name,
			     "load latency allows neither \"cmask\" nor \"inv\" (guide 3.7)");
	return 0;
}

static int load_event(struct loader *loader, struct draft *draft, const char *topic, const char *source,
		      const json_t *entry)
{
	const char *pebs = entry_text(entry, "pebs");
	long counters = counters_of(loader, draft, entry_text(entry, "name"), entry);
	struct known_event event = {
		.topic = topic,
		.config = entry_config(entry),
		.config1 = entry_number(entry, "threshold", 0),
		.default_period = entry_number(entry, "period", 0),
		.counters = counters,
		.fixed_counter = -1,
		.precise = !pebs		  ? 0
			   : !strcmp(pebs, "can") ? 1
						  : 2,
		.architectural = -1,
		.source = source,
	};

	row_read(loader, &known_event_layout, entry, &event);
	if (counters < 0 || check_event(loader, draft, entry, &event))
		return -1;
	if (draft_is_from_folder(draft, event.name))
		return FAULT(loader, event.name, "stands in %s too", draft_file_of(draft, event.name));
	draft_note_file(loader, draft, event.name);
	draft_put(draft, DRAFT_EVENTS, &event);
	put_aliases(draft, DRAFT_ALIASES, entry);
	return 0;
}

static int load_topic(struct loader *loader, struct draft *draft, const char *topic, const json_t *table)
{
	const json_t *entries = json_object_get(table, "events"), *entry;
	json_t *name = json_string(topic);
	size_t i;

	json_array_append_new(loader->documents, name);
	if (entry_check_sources(loader, "", table) || entries_check(loader, entries, "name"))
		return -1;
	json_array_foreach(entries, i, entry)
		if (load_event(loader, draft, json_string_value(name), entry_text(table, "source"), entry))
			return -1;
	return 0;
}

static int load_registers(struct loader *loader, struct draft *draft, const json_t *entries)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		long counters = counters_of(loader, draft, entry_text(entry, "name"), entry);
		struct offcore_register row = {entry_text(entry, "name"), entry_config(entry),
					       entry_hex(entry, "msr"), counters};

		if (counters < 0)
			return -1;
		draft_put(draft, DRAFT_REGISTERS, &row);
		put_aliases(draft, DRAFT_OFFCORE_ALIASES, entry);
	}
	return 0;
}

/* Flags of enum offcore_kind. */
static __u8 kinds_of(const json_t *entry)
{
	static const char *const names[] = {"remote",  "partly_remote", "hitm", "prefetch",
					    "no_line", "supplier",	"snoop"};
	const json_t *kind;
	__u8 kinds = 0;
	size_t i;

	json_array_foreach(json_object_get(entry, "kinds"), i, kind)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			if (!strcmp(json_string_value(kind), names[k]))
				kinds |= 1 << k;
	return kinds;
}

/* Composites are stored as bits only. If a single part has moved to another bit, the composites that contain
 * it are adjusted: Westmere swaps two bits, and inherits the composites. */
static void follow_moved_bits(struct draft *draft, enum draft_kind kind, const __u64 *moved_to)
{
	for (size_t i = 0; i < draft->rows[kind].nr; i++) {
		struct offcore_part *part = draft_row(draft, kind, i);
		__u64 bits = 0;

		if (!(part->bits & (part->bits - 1)))
			continue;
		for (int bit = 0; bit < OFFCORE_BITS; bit++)
			if (part->bits >> bit & 1)
				bits |= moved_to[bit];
		part->bits = bits;
	}
}

/* Checks that each bit has only one name. Of two entries for the same bit the later one is reported; an entry
 * is reported rather than an inherited row. */
static int check_bits(struct loader *loader, struct draft *draft, enum draft_kind kind, const json_t *entries)
{
	for (size_t i = json_array_size(entries); i-- > 0;) {
		const json_t *entry = json_array_get(entries, i);
		const struct offcore_part *part = draft_find(draft, kind, entry_text(entry, "name"));

		for (size_t j = 0; json_object_get(entry, "bit") && j < draft->rows[kind].nr; j++) {
			const struct offcore_part *other = draft_row(draft, kind, j);

			if (other != part && other->bits == part->bits)
				return FAULT(loader, part->name, "bit %d is already %s",
					     __builtin_ctzll(part->bits), other->name);
		}
	}
	return 0;
}

static int load_single_parts(struct loader *loader, struct draft *draft, enum draft_kind kind,
			     const json_t *entries)
{
	__u64 moved_to[OFFCORE_BITS];
	const json_t *entry;
	size_t i;

	for (int bit = 0; bit < OFFCORE_BITS; bit++)
		moved_to[bit] = 1ULL << bit;
	json_array_foreach(entries, i, entry) {
		struct offcore_part row = {entry_text(entry, "name"), entry_text(entry, "description"),
					   1ULL << entry_number(entry, "bit", 0), kinds_of(entry)};
		const struct offcore_part *before = draft_find(draft, kind, row.name);
		json_int_t bit = entry_number(entry, "bit", -1);

		if (bit < 0)
			continue;
		if (before && !(before->bits & (before->bits - 1)))
			moved_to[__builtin_ctzll(before->bits)] = row.bits;
		if (before)
			draft->offcore.reserved &= ~before->bits;
		if (entry_flag(entry, "reserved"))
			draft->offcore.reserved |= row.bits;
		draft_put(draft, kind, &row);
		put_aliases(draft, DRAFT_OFFCORE_ALIASES, entry);
	}
	follow_moved_bits(draft, kind, moved_to);
	return check_bits(loader, draft, kind, entries);
}

/* The bits of the parts of which an entry is composed; 0 if one of them does not exist yet, and *lacks is its
 * name. */
static __u64 composed_bits(struct draft *draft, enum draft_kind kind, const json_t *entry, const char **lacks)
{
	const json_t *name;
	__u64 bits = 0;
	size_t i;

	json_array_foreach(json_object_get(entry, "of"), i, name) {
		const struct offcore_part *part = draft_find(draft, kind, json_string_value(name));

		*lacks = json_string_value(name);
		if (!part)
			return 0;
		bits |= part->bits;
	}
	return bits;
}

static bool has_entry(const json_t *entries, const char *name)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry)
		if (!name_order(entry_text(entry, "name"), name))
			return true;
	return false;
}

static int load_composites(struct loader *loader, struct draft *draft, enum draft_kind kind,
			   const json_t *entries)
{
	const json_t *entry, *waiting;
	const char *lacks = NULL;
	bool progress = true;
	size_t i;

	/* Inherited composites of the same names must not be used as parts of the new ones. */
	json_array_foreach(entries, i, entry)
		if (json_object_get(entry, "of"))
			draft_drop(draft, kind, entry_text(entry, "name"));
	do {
		progress = false;
		waiting = NULL;
		json_array_foreach(entries, i, entry) {
			struct offcore_part row = {entry_text(entry, "name"),
						   entry_text(entry, "description"), 0, 0};

			if (!json_object_get(entry, "of") || draft_find(draft, kind, row.name))
				continue;
			row.bits = composed_bits(draft, kind, entry, &lacks);
			if (row.bits) {
				draft_put(draft, kind, &row);
				put_aliases(draft, DRAFT_OFFCORE_ALIASES, entry);
				progress = true;
			} else {
				waiting = entry;
			}
		}
	} while (progress);
	if (!waiting)
		return 0;
	composed_bits(draft, kind, waiting, &lacks);
	if (has_entry(entries, lacks))
		return FAULT(loader, entry_text(waiting, "name"), "is composed of itself");
	return FAULT(loader, entry_text(waiting, "name"), "is composed of %s, which does not exist", lacks);
}

static int load_presets(struct loader *loader, struct draft *draft, const json_t *entries)
{
	if (entries_check(loader, entries, "name"))
		return -1;
	put_each(loader, draft, DRAFT_PRESETS, &offcore_preset_layout, entries);
	return 0;
}

/* Checks that requests have the lower bits of the register, and responses the bits above. */
static int check_sides(struct loader *loader, const struct draft *draft)
{
	__u64 responses = 0;

	for (size_t i = 0; i < draft->rows[DRAFT_RESPONSES].nr; i++)
		responses |= ((const struct offcore_part *)draft_row(draft, DRAFT_RESPONSES, i))->bits;
	for (size_t i = 0; i < draft->rows[DRAFT_REQUESTS].nr; i++) {
		const struct offcore_part *part = draft_row(draft, DRAFT_REQUESTS, i);

		if (responses && part->bits >= (responses & -responses))
			return FAULT(loader, part->name, "a bit of requests is below those of responses");
	}
	return 0;
}

static int load_offcore(struct loader *loader, struct draft *draft, const json_t *table)
{
	static const struct {
		const char *field;
		enum draft_kind kind;
	} parts[] = {{"requests", DRAFT_REQUESTS}, {"responses", DRAFT_RESPONSES}};
	const json_t *registers = json_object_get(table, "registers");

	if (entry_check_sources(loader, "", table) || entries_check(loader, registers, "name") ||
	    load_registers(loader, draft, registers))
		return -1;
	if (entry_text(table, "source"))
		draft->offcore.source = entry_text(table, "source");
	if (json_object_get(table, "ignored")) {
		draft->offcore.ignored = entry_config(json_object_get(table, "ignored"));
		draft->offcore.ignored_source = entry_text(json_object_get(table, "ignored"), "source");
	}
	draft->offcore.default_period = entry_number(table, "period", draft->offcore.default_period);
	if (!draft->offcore.source || !draft->offcore.default_period)
		return FAULT(loader, "", "\"%s\" is missing", draft->offcore.source ? "period" : "source");
	for (size_t i = 0; i < 2; i++) {
		const json_t *entries = json_object_get(table, parts[i].field);

		if (entries_check(loader, entries, "name") ||
		    load_single_parts(loader, draft, parts[i].kind, entries) ||
		    load_composites(loader, draft, parts[i].kind, entries))
			return -1;
	}
	return check_sides(loader, draft) || load_presets(loader, draft, json_object_get(table, "presets"))
		       ? -1
		       : 0;
}

static long counters_of_rule(struct loader *loader, const struct draft *draft, const char *list, size_t i,
			     const json_t *entry)
{
	char label[64];

	snprintf(label, sizeof(label), "\"%s\" entry %zu", list, i + 1);
	return counters_of(loader, draft, label, entry);
}

/* An entry without a code is for any event. */
static int load_precise(struct loader *loader, struct draft *draft, const json_t *entries)
{
	const __u64 flags = CONFIG_EDGE | CONFIG_PC | CONFIG_ANY | CONFIG_INV | CONFIG_CMASK;
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		long counters = counters_of_rule(loader, draft, "precise", i, entry);
		struct kernel_rule rule = {(json_object_get(entry, "code") ? CONFIG_EVENT : 0) |
						   (json_object_get(entry, "umask") ? CONFIG_UMASK : 0) |
						   (entry_flag(entry, "flags") ? 0 : flags),
					   entry_config(entry),
					   counters,
					   -1,
					   entry_flag(entry, "exclusive"),
					   entry_flag(entry, "several")};

		if (counters < 0)
			return -1;
		draft_put(draft, DRAFT_PRECISE, &rule);
	}
	return 0;
}

static int load_fixed(struct loader *loader, struct draft *draft, const json_t *entries)
{
	const __u64 compared = CONFIG_SELECT | CONFIG_EDGE | CONFIG_INV | CONFIG_CMASK;
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		long counters = counters_of_rule(loader, draft, "fixed", i, entry);
		struct kernel_rule rule = {compared, entry_config(entry),
					   counters, entry_number(entry, "fixed_counter", -1),
					   false,    false};

		if (counters < 0)
			return -1;
		draft_put(draft, DRAFT_PLACED, &rule);
	}
	return 0;
}

static int load_counters(struct loader *loader, struct draft *draft, const json_t *entries)
{
	const json_t *entry, *code;
	size_t i, j;

	json_array_foreach(entries, i, entry) {
		long counters = counters_of_rule(loader, draft, "counters", i, entry);

		if (counters < 0)
			return -1;
		json_array_foreach(json_object_get(entry, "codes"), j, code) {
			struct kernel_rule rule = {
				CONFIG_EVENT | (json_object_get(entry, "umask") ? CONFIG_UMASK : 0),
				strtoull(json_string_value(code), NULL, 16) | entry_hex(entry, "umask") << 8,
				counters,
				-1,
				entry_flag(entry, "exclusive"),
				false};

			draft_put(draft, DRAFT_PLACED, &rule);
		}
	}
	return 0;
}

static void put_generic(struct loader *loader, struct draft *draft, const json_t *entries)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) {
		struct known_generic row = {.config = entry_config(entry)};

		row_read(loader, &known_generic_layout, entry, &row);
		draft_put(draft, DRAFT_GENERIC, &row);
	}
}

/* Rules have no names, so a table of rules replaces the previous one as a whole. */
static int load_kernel(struct loader *loader, struct draft *draft, const json_t *table)
{
	if (entry_check_sources(loader, "", table))
		return -1;
	draft->kernel.source = entry_text(table, "source");
	draft->kernel.lowest_period = entry_number(table, "lowest_period", 0);
	draft->kernel.beyond_period = entry_number(table, "beyond_period", 0);
	draft->kernel.access_bits = entry_flag(table, "access_bits");
	draft->kernel.own_registers = entry_flag(table, "own_registers");
	draft->kernel.record = entry_text(table, "record");
	draft->kernel.precise_cycles = entry_config(json_object_get(table, "precise_cycles"));
	for (enum draft_kind kind = DRAFT_PRECISE; kind <= DRAFT_MICROCODE; kind++)
		draft_clear(draft, kind);
	put_each(loader, draft, DRAFT_MICROCODE, &known_microcode_layout,
		 json_object_get(table, "microcode"));
	put_generic(loader, draft, json_object_get(table, "generic"));
	put_each(loader, draft, DRAFT_ERRATA, &known_erratum_layout, json_object_get(table, "errata"));
	if (load_precise(loader, draft, json_object_get(table, "precise")) ||
	    load_fixed(loader, draft, json_object_get(table, "fixed")))
		return -1;
	return load_counters(loader, draft, json_object_get(table, "counters"));
}

static int load_data_sources(struct loader *loader, struct draft *draft, const json_t *table)
{
	const json_t *entry;
	size_t i;

	if (entries_check(loader, table, "code"))
		return -1;
	json_array_foreach(table, i, entry) {
		struct known_data_source row = {0}, *same = NULL;

		row_read(loader, &known_data_source_layout, entry, &row);
		for (size_t j = 0; !same && j < draft->rows[DRAFT_DATA_SOURCES].nr; j++) {
			same = draft_row(draft, DRAFT_DATA_SOURCES, j);
			if (same->code != row.code)
				same = NULL;
		}
		if (same)
			*same = row;
		else
			draft_put(draft, DRAFT_DATA_SOURCES, &row);
	}
	if (draft->rows[DRAFT_DATA_SOURCES].nr == 16)
		return 0;
	return FAULT(loader, "", "has %zu of the 16 codes", draft->rows[DRAFT_DATA_SOURCES].nr);
}

static int load_branches(struct loader *loader, struct draft *draft, const json_t *table)
{
	if (entries_check(loader, table, "filter"))
		return -1;
	put_each(loader, draft, DRAFT_BRANCHES, &known_branch_kind_layout, table);
	return 0;
}

/* Reads entries with a name and a number, which is in the given member. */
static const struct unit_number *unit_numbers(struct loader *loader, const json_t *entries,
					      const char *member)
{
	struct unit_number *numbers = loader_keep(loader, json_array_size(entries), sizeof(*numbers));
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry)
		numbers[i] = (struct unit_number){entry_text(entry, "name"), entry_hex(entry, member)};
	return numbers;
}

static const struct unit_field *unit_fields(struct loader *loader, const json_t *entries)
{
	struct unit_field *fields = loader_keep(loader, json_array_size(entries), sizeof(*fields));
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry)
		row_read(loader, &unit_field_layout, entry, &fields[i]);
	return fields;
}

/* Checks that the fields overlap neither `taken` nor each other, and that their values fit. */
static int check_unit_fields(struct loader *loader, const char *label, const struct unit_field *fields,
			     size_t nr, __u64 *taken)
{
	for (size_t f = 0; f < nr; f++) {
		const struct unit_field *field = &fields[f];
		__u64 most = field->high < field->low ? 0 : unit_field_most(field);
		bool usual = !field->usual, usual_smt = !field->usual_smt;

		if (!most || *taken & most << field->low)
			return FAULT(loader, label,
				     "the bits of %s are the count's, another field's or no field's",
				     field->name);
		*taken |= most << field->low;
		for (size_t v = 0; v < field->nr_values; v++) {
			if (field->values[v].value > most)
				return FAULT(loader, label, "%s=%s does not fit", field->name,
					     field->values[v].name);
			usual = usual || !strcmp(field->values[v].name, field->usual);
			usual_smt = usual_smt || !strcmp(field->values[v].name, field->usual_smt);
		}
		if (!usual || !usual_smt)
			return FAULT(loader, label, "%s has no value %s", field->name,
				     usual ? field->usual_smt : field->usual);
	}
	return 0;
}

static int check_unit_kind(struct loader *loader, const struct known_unit *unit, const struct unit_kind *kind)
{
	__u64 count = (1ULL << unit->count_bits) - 1, taken = kind->always | count;

	if (kind->always & count)
		return FAULT(loader, kind->name, "\"always\" has bits of the count");
	return check_unit_fields(loader, kind->name, kind->fields, kind->nr_fields, &taken);
}

static __u8 scope_of(const json_t *entry)
{
	static const char *const scopes[] = {
		[UNIT_THREAD] = "thread", [UNIT_CORE] = "core", [UNIT_PACKAGE] = "package"};
	__u8 scope = 0;

	while (strcmp(scopes[scope], entry_text(entry, "scope")))
		scope++;
	return scope;
}

/* The index of the row that has the wanted text at this offset; `nr` if there is none. */
static size_t place_of(const char *wanted, const void *rows, size_t nr, size_t size, size_t offset)
{
	size_t i = 0;

	while (i < nr && strcmp(*(const char *const *)((const char *)rows + i * size + offset), wanted))
		i++;
	return i;
}

#define PLACE_OF(wanted, rows, nr, type, member)                                                             \
	place_of(wanted, rows, nr, sizeof(struct type), offsetof(struct type, member))

/* Returns a copy of the rows with room for more. */
static void *keep_more(struct loader *loader, const void *rows, size_t nr, size_t size, size_t more)
{
	void *all = loader_keep(loader, nr + more, size);

	return nr ? memcpy(all, rows, nr * size) : all;
}

/* Checks that an entry has all of these members, which it must if it does not build on another one. */
static int check_whole(struct loader *loader, const json_t *entry, const char *const *members, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!json_object_get(entry, members[i]))
			return FAULT(loader, entry_text(entry, "name"), "\"%s\" is missing", members[i]);
	return 0;
}

/* Adds fields. A field replaces the one with the same title, the source's name. */
static int put_unit_fields(struct loader *loader, struct unit_kind *kind, const json_t *entries)
{
	size_t nr = json_array_size(entries);
	const struct unit_field *own = unit_fields(loader, entries);
	struct unit_field *fields = keep_more(loader, kind->fields, kind->nr_fields, sizeof(*fields), nr);

	for (size_t i = 0; i < nr; i++) {
		size_t at = PLACE_OF(own[i].title, fields, kind->nr_fields, unit_field, title);

		kind->nr_fields += at == kind->nr_fields;
		fields[at] = own[i];
	}
	kind->fields = fields;
	for (size_t i = 0; i < kind->nr_fields; i++)
		if (PLACE_OF(fields[i].name, fields, kind->nr_fields, unit_field, name) < i)
			return FAULT(loader, kind->name, "%s stands twice", fields[i].name);
	return 0;
}

/* Loads an entry into a kind, which is the existing kind of the same name, or zeroed. */
static int load_unit_kind(struct loader *loader, struct unit_kind *kind, const json_t *entry)
{
	static const char *const members[] = {"description", "counters", "fields"};
	const json_t *counters = json_object_get(entry, "counters"),
		     *fields = json_object_get(entry, "fields");

	if (!kind->name && check_whole(loader, entry, members, ARRAY_SIZE(members)))
		return -1;
	kind->name = entry_text(entry, "name");
	if (json_object_get(entry, "description"))
		kind->description = entry_text(entry, "description");
	if (json_object_get(entry, "always"))
		kind->always = entry_hex(entry, "always");
	if (counters) {
		kind->counters = unit_numbers(loader, counters, "msr");
		kind->nr_counters = json_array_size(counters);
	}
	return put_unit_fields(loader, kind, fields);
}

/* Adds kinds. An entry is merged into the existing kind of the same name. */
static int put_unit_kinds(struct loader *loader, struct known_unit *unit, const json_t *entries)
{
	struct unit_kind *kinds =
		keep_more(loader, unit->kinds, unit->nr_kinds, sizeof(*kinds), json_array_size(entries));
	const json_t *entry;
	size_t i, nr_counters = 0;

	if (entries_check(loader, entries, "name"))
		return -1;
	json_array_foreach(entries, i, entry) {
		size_t at = PLACE_OF(entry_text(entry, "name"), kinds, unit->nr_kinds, unit_kind, name);

		unit->nr_kinds += at == unit->nr_kinds;
		if (load_unit_kind(loader, &kinds[at], entry))
			return -1;
	}
	unit->kinds = kinds;
	for (i = 0; i < unit->nr_kinds; i++) {
		nr_counters += kinds[i].nr_counters;
		if (check_unit_kind(loader, unit, &kinds[i]))
			return -1;
	}
	if (unit->select + nr_counters > 64 || unit->status + nr_counters > 64 || nr_counters > 32)
		return FAULT(loader, unit->name, "\"control\" has no bits for %zu counters", nr_counters);
	return 0;
}

/* With "like", the unit starts as a copy of another CPU's unit of the same name. */
static int begin_unit(struct loader *loader, struct known_unit *unit, const json_t *entry)
{
	static const char *const members[] = {"description", "scope",	"count_bits",
					      "wraps_in_ms", "control", "kinds"};
	const char *name = entry_text(entry, "name"), *like = entry_text(entry, "like");
	const struct cpu_events *cpu = like ? loader_find_cpu(loader, like) : NULL;
	size_t at = cpu ? PLACE_OF(name, cpu->units, cpu->nr_units, known_unit, name) : 0;

	*unit = (struct known_unit){0};
	if (!like)
		return check_whole(loader, entry, members, ARRAY_SIZE(members));
	if (!cpu || at == cpu->nr_units)
		return FAULT(loader, name,
			     "is like that of \"%s\", which does not stand before it, nor is built in", like);
	*unit = cpu->units[at];
	return 0;
}

static int load_unit(struct loader *loader, struct draft *draft, const char *source, const json_t *entry)
{
	const json_t *control = json_object_get(entry, "control");
	struct known_unit unit;

	if (begin_unit(loader, &unit, entry))
		return -1;
	unit.name = entry_text(entry, "name");
	unit.source = source;
	if (json_object_get(entry, "description"))
		unit.description = entry_text(entry, "description");
	if (json_object_get(entry, "scope"))
		unit.scope = scope_of(entry);
	unit.count_bits = entry_number(entry, "count_bits", unit.count_bits);
	unit.wraps_in_ms = entry_number(entry, "wraps_in_ms", unit.wraps_in_ms);
	unit.rdpmc = entry_number(entry, "rdpmc", unit.rdpmc);
	if (control) {
		unit.control = entry_text(control, "name");
		unit.control_msr = entry_hex(control, "msr");
		unit.freeze = entry_number(control, "freeze", 0);
		unit.unfreeze = entry_number(control, "unfreeze", 0);
		unit.reset = entry_number(control, "reset", 0);
		unit.select = entry_number(control, "select", 0);
		unit.status = entry_number(control, "status", 0);
	}
	if (put_unit_kinds(loader, &unit, json_object_get(entry, "kinds")))
		return -1;
	draft_put(draft, DRAFT_UNITS, &unit);
	return 0;
}

static int load_units(struct loader *loader, struct draft *draft, const json_t *table)
{
	const json_t *units = json_object_get(table, "units"), *entry;
	size_t i;

	if (entry_check_sources(loader, "", table) || entries_check(loader, units, "name"))
		return -1;
	json_array_foreach(units, i, entry)
		if (load_unit(loader, draft, entry_text(table, "source"), entry))
			return -1;
	return 0;
}

/* --- counters with ESCRs ---------------------------------------------------------------------- */

#define ESCR_COUNTERS_MOST 32 /* number of bits in the counters of struct unit_escr */

static int check_escr_counters(struct loader *loader, const struct known_unit *unit)
{
	if (unit->nr_counters > ESCR_COUNTERS_MOST)
		return FAULT(loader, unit->name, "has more than %d counters", ESCR_COUNTERS_MOST);
	for (size_t c = 0; c < unit->nr_counters; c++) {
		const struct unit_counter *counter = &unit->counters[c];

		for (size_t i = 0; i < counter->nr_after; i++)
			if (counter->after[i].counter >= unit->nr_counters || counter->after[i].counter == c)
				return FAULT(loader, counter->name, "is started by counter %u, %s",
					     counter->after[i].counter,
					     counter->after[i].counter == c ? "which it is itself"
									    : "which does not exist");
	}
	return 0;
}

/* The fields of the event mask. Entries number its bits from 0. */
static const struct unit_field *escr_masks(struct loader *loader, const json_t *entries)
{
	struct unit_field *fields = (struct unit_field *)unit_fields(loader, entries);

	for (size_t i = 0; i < json_array_size(entries); i++) {
		fields[i].low += ESCR_MASK;
		fields[i].high += ESCR_MASK;
	}
	return fields;
}

static int check_escr_kind(struct loader *loader, const struct known_unit *unit, const struct unit_kind *kind)
{
	__u64 taken = kind->always | ~ESCR_MASKS;

	for (size_t e = 0; e < kind->nr_escrs; e++)
		if ((__u64)kind->escrs[e].counters >> unit->nr_counters)
			return FAULT(loader, kind->name, "%s has counters that do not exist",
				     kind->escrs[e].name);
	if (kind->nr_metrics && unit->nr_replay != 2)
		return FAULT(loader, kind->name, "\"metrics\" need the two registers of \"replay\"");
	return check_unit_fields(loader, kind->name, kind->fields, kind->nr_fields, &taken);
}

static int load_escr_kinds(struct loader *loader, const struct known_unit *unit, struct unit_kind *rows,
			   const json_t *kinds)
{
	const json_t *kind;
	size_t i;

	json_array_foreach(kinds, i, kind) {
		const json_t *masks = json_object_get(kind, "masks");

		row_read(loader, &unit_kind_layout, kind, &rows[i]);
		rows[i].always = entry_hex(kind, "code") << ESCR_EVENT |
				 (__u64)entry_number(kind, "select", 0) << CCCR_SELECT | CCCR_ALWAYS;
		rows[i].fields = escr_masks(loader, masks);
		rows[i].nr_fields = json_array_size(masks);
		if (entries_check(loader, masks, "name") || check_escr_kind(loader, unit, &rows[i]))
			return -1;
	}
	return 0;
}

static int load_escrs(struct loader *loader, struct draft *draft, const json_t *table)
{
	const json_t *kinds = json_object_get(table, "kinds"), *replay = json_object_get(table, "replay");
	struct unit_kind *rows = loader_keep(loader, json_array_size(kinds), sizeof(*rows));
	struct known_unit unit = {0};
	/* The bits of the event's number, of its mask, of the ESCR's select, and those that nhmtap sets
	 * itself. */
	__u64 taken = 0x3fULL << ESCR_EVENT | ESCR_MASKS | 7U << CCCR_SELECT | CCCR_ALWAYS | CCCR_ENABLE |
		      CCCR_EXTENDED | CCCR_OVERFLOW;

	row_read(loader, &known_unit_layout, table, &unit);
	unit.scope = scope_of(table);
	unit.replay = unit_numbers(loader, replay, "msr");
	unit.kinds = rows;
	if (entry_check_sources(loader, "", table) || entries_check(loader, kinds, "name") ||
	    entries_check(loader, json_object_get(table, "fields"), "name") ||
	    check_escr_counters(loader, &unit) ||
	    check_unit_fields(loader, unit.name, unit.fields, unit.nr_fields, &taken) ||
	    load_escr_kinds(loader, &unit, rows, kinds))
		return -1;
	draft_put(draft, DRAFT_UNITS, &unit);
	return 0;
}

static int load_contradictions(struct loader *loader, struct draft *draft, const json_t *table)
{
	const json_t *entry;
	size_t i;

	if (entries_check(loader, table, "id"))
		return -1;
	json_array_foreach(table, i, entry) {
		json_t *says = json_object_get(entry, "says"), *claim;
		struct source_claim *claims = loader_keep(loader, json_object_size(says), sizeof(*claims));
		struct known_contradiction row = {.says = claims, .nr_says = json_object_size(says)};
		const char *source;

		row_read(loader, &known_contradiction_layout, entry, &row);
		json_object_foreach(says, source, claim)
			*claims++ = (struct source_claim){source, json_string_value(claim)};
		draft_put(draft, DRAFT_CONTRADICTIONS, &row);
	}
	return 0;
}

static int load_named(struct loader *loader, struct draft *draft, enum draft_kind kind,
		      const struct row_layout *layout, const json_t *table)
{
	const json_t *entry;
	size_t i;

	if (entries_check(loader, table, "name"))
		return -1;
	json_array_foreach(table, i, entry)
		draft_note_file(loader, draft, entry_text(entry, "name"));
	put_each(loader, draft, kind, layout, table);
	return 0;
}

static int load_metrics(struct loader *loader, struct draft *draft, const json_t *table)
{
	return load_named(loader, draft, DRAFT_METRICS, &known_metric_layout, table);
}

static int load_identities(struct loader *loader, struct draft *draft, const json_t *table)
{
	return load_named(loader, draft, DRAFT_IDENTITIES, &known_identity_layout, table);
}

static int load_shares(struct loader *loader, struct draft *draft, const json_t *table)
{
	const json_t *entry;
	size_t i;

	if (entries_check(loader, table, "name"))
		return -1;
	json_array_foreach(table, i, entry) {
		const json_t *cost = json_object_get(entry, "cost");
		struct known_share row = {
			.cost_low = entry_number(cost, "low", 1),
			.cost = entry_number(cost, "usual", 1),
			.cost_high = entry_number(cost, "high", 1),
			.estimated = cost != NULL,
		};

		row_read(loader, &known_share_layout, entry, &row);
		if (row.cost_low > row.cost || row.cost > row.cost_high)
			return FAULT(loader, row.name, "\"cost\" must rise from low to usual to high");
		draft_note_file(loader, draft, row.name);
		draft_put(draft, DRAFT_SHARES, &row);
	}
	return 0;
}

/* Some names of files stand for special tables; any other file is a topic of events. */
int draft_load_table(struct loader *loader, struct draft *draft, const char *stem)
{
	static const struct {
		const char *kind;
		int (*load)(struct loader *loader, struct draft *draft, const json_t *table);
	} kinds[] = {
		{"offcore", load_offcore},
		{"kernel", load_kernel},
		{"data_source", load_data_sources},
		{"lbr", load_branches},
		{"msr", load_units},
		{"escr", load_escrs},
		{"contradictions", load_contradictions},
		{"metrics", load_metrics},
		{"accounting", load_shares},
		{"identities", load_identities},
	};
	const json_t *table;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].kind, stem))
			continue;
		table = loader_read_table(loader, stem);
		return table ? kinds[i].load(loader, draft, table) : -1;
	}
	if (stem[strspn(stem, "abcdefghijklmnopqrstuvwxyz0123456789_-")])
		return FAULT(loader, "", "a topic is a lower-case word");
	table = loader_read_table(loader, "events");
	return table ? load_topic(loader, draft, stem, table) : -1;
}
