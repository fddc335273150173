// SPDX-License-Identifier: GPL-2.0-only
#include "event/escr_spelling.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Names of libpfm4 (events/intel_netburst_events.h) that Intel's manual does not have. */
static const struct other_name {
	const char *kind, *theirs, *ours; /* an empty kind: any */
} other_names[] = {
	{"uop_type", "uops_type", "uop_type"},
	/* The manual calls the only bit of its mask NBOGUS. */
	{"mispred_branch_retired", "bogus", "nbogus"},
	{"replay_event", "l1_ld_miss", "metric=l1_load_miss"},
	{"replay_event", "l2_ld_miss", "metric=l2_load_miss"},
	{"replay_event", "dtlb_ld_miss", "metric=dtlb_load_miss"},
	{"replay_event", "dtlb_st_miss", "metric=dtlb_store_miss"},
	{"replay_event", "dtlb_all_miss", "metric=dtlb_all_miss"},
	{"replay_event", "br_msp", "metric=tagged_mispred_branch"},
	{"replay_event", "mob_ld_replay", "metric=mob_load_replay"},
	{"replay_event", "sp_ld_ret", "metric=split_load"},
	{"replay_event", "sp_st_ret", "metric=split_store"},
	{"", "e", "edge"},
	{"", "cmpl", "complement"},
};

#define MOST_FIELDS 32

struct term_reader {
	const struct known_unit *unit;
	const struct unit_kind *kind;
	char *terms;
	size_t size, used;
	/* Values of the kind's fields and of the unit's. */
	__u64 masks[MOST_FIELDS], others[MOST_FIELDS];
	bool sided, user, kernel;
};

__attribute__((format(printf, 2, 3))) static void add(struct term_reader *reader, const char *format, ...)
{
	va_list args;

	if (reader->used < reader->size) {
		va_start(args, format);
		reader->used +=
			vsnprintf(reader->terms + reader->used, reader->size - reader->used, format, args);
		va_end(args);
	}
}

static const char *our_name(const char *kind, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++)
		if ((!*other_names[i].kind || !strcmp(other_names[i].kind, kind)) &&
		    !strcmp(other_names[i].theirs, name))
			return other_names[i].ours;
	return name;
}

/* A bit of a field: that of a field of one bit by the field's name, or one of a longer field, as in
 * TYPE_BIT0, REQ_LEN1 and TAG3. */
static bool take_bit(const struct unit_field *field, const char *name, __u64 *bits)
{
	size_t stem = strcspn(name, "0123456789"), length = strlen(field->name);
	unsigned int width = field->high - field->low;
	unsigned long bit = strtoul(name + stem, NULL, 10);

	if (!width && !strcmp(field->name, name))
		return (*bits = 1);
	if (!width || !name[stem] || bit > width || length > stem || strncmp(field->name, name, length) ||
	    (length < stem && strncmp(name + length, "_bit", stem - length)))
		return false;
	return (*bits |= 1ULL << bit);
}

static bool take_mask(struct term_reader *reader, const char *name)
{
	for (size_t i = 0; i < reader->kind->nr_fields && i < MOST_FIELDS; i++)
		if (take_bit(&reader->kind->fields[i], name, &reader->masks[i]))
			return true;
	for (size_t i = 0; i < reader->unit->nr_fields && i < MOST_FIELDS; i++)
		if (reader->unit->fields[i].high > reader->unit->fields[i].low &&
		    take_bit(&reader->unit->fields[i], name, &reader->others[i]))
			return true;
	return false;
}

/* A modifier with a value, "u=0", or without one. */
static bool take_modifier(struct term_reader *reader, const char *piece)
{
	bool on = strcmp(piece + strcspn(piece, "="), "=0") != 0;
	size_t name = strcspn(piece, "=");

	if (!strncmp(piece, "thr", name) && name == 3 && piece[name]) {
		if (on)
			add(reader, ",threshold%s", piece + name);
		return true;
	}
	if (piece[name] && strcmp(piece + name, "=1") && on)
		return false;
	if (name == 1 && (*piece == 'u' || *piece == 'k')) {
		*(*piece == 'u' ? &reader->user : &reader->kernel) = on;
		return reader->sided = true;
	}
	if (name == 2 && (!strncmp(piece, "uk", 2) || !strncmp(piece, "ku", 2)))
		return reader->sided = reader->user = reader->kernel = true;
	if (piece[name] && ((name == 1 && *piece == 'e') || (name == 4 && !strncmp(piece, "cmpl", 4)))) {
		if (on)
			add(reader, ",%s", *piece == 'e' ? "edge" : "complement");
		return true;
	}
	return false;
}

static void take_piece(struct term_reader *reader, const char *piece)
{
	const char *name = our_name(reader->kind->name, piece);

	if (!take_mask(reader, name) && !take_modifier(reader, piece))
		add(reader, ",%s", name);
}

static bool add_fields(struct term_reader *reader, const struct unit_field *fields, const __u64 *values)
{
	bool any = false;

	for (size_t i = 0; i < MOST_FIELDS; i++) {
		if (values[i])
			add(reader, ",%s=%#llx", fields[i].name, values[i]);
		any = any || values[i];
	}
	return any;
}

/* libpfm4 takes the only mask where none is named. */
static void add_masks(struct term_reader *reader)
{
	if (!add_fields(reader, reader->kind->fields, reader->masks) && reader->kind->nr_fields == 1)
		add(reader, ",%s", reader->kind->fields[0].name);
	add_fields(reader, reader->unit->fields, reader->others);
}

/* A level that is named leaves out the other one. */
static void add_levels(struct term_reader *reader, bool two_threads)
{
	const char *levels = reader->user && reader->kernel ? "all"
			     : reader->user		    ? "usr"
			     : reader->kernel		    ? "os"
							    : "none";

	if (reader->sided)
		add(reader, ",t0=%s", levels);
	if (reader->sided && two_threads)
		add(reader, ",t1=%s", levels);
}

static const struct unit_kind *kind_named(const struct known_unit *unit, const char *name)
{
	for (size_t k = 0; k < unit->nr_kinds; k++)
		if (!strcmp(unit->kinds[k].name, our_name(unit->kinds[k].name, name)))
			return &unit->kinds[k];
	return NULL;
}

bool escr_spelled(const struct known_unit *unit, bool two_threads, const char *text, size_t length,
		  char *terms, size_t size)
{
	struct term_reader reader = {.unit = unit, .terms = terms, .size = size};
	char copy[160], *rest = copy, *piece;

	if (length >= sizeof(copy))
		return false;
	for (size_t i = 0; i < length; i++)
		copy[i] = (char)tolower((unsigned char)text[i]);
	copy[length] = '\0';
	reader.kind = kind_named(unit, strsep(&rest, ":"));
	if (!reader.kind)
		return false;
	add(&reader, "%s", reader.kind->name);
	while ((piece = strsep(&rest, ":")))
		take_piece(&reader, piece);
	add_masks(&reader);
	add_levels(&reader, two_threads);
	return reader.used < size;
}
