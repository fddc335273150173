// SPDX-License-Identifier: GPL-2.0-only
#include "tables/compose.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "tables/config.h"
#include "tables/names.h"

#define UMASK_SHIFT 8
#define UMASK_BITS  0xff00ULL

/* A piece of a name, up to a separator. */
struct piece {
	char text[96];
	size_t at; /* its offset in the name */
};

/* Reads the piece at *at, which ends at one of the characters in `ends`. Moves *at to that character and
 * returns it. */
static char next_piece(const char *name, size_t *at, const char *ends, struct piece *piece)
{
	size_t length = strcspn(name + *at, ends);

	piece->at = *at;
	snprintf(piece->text, sizeof(piece->text), "%.*s", (int)length, name + *at);
	*at += length;
	return name[*at];
}

/* --- off-core responses ----------------------------------------------------------------------- */

/* The table's name of a register, request or response, given its name or an alias. */
static const char *offcore_name(const struct known_offcore *offcore, const char *name)
{
	for (size_t i = 0; i < offcore->nr_aliases; i++)
		if (!name_order(offcore->aliases[i].name, name))
			return offcore->aliases[i].of;
	return name;
}

static const struct offcore_register *find_register(const struct known_offcore *offcore, const char *name)
{
	name = offcore_name(offcore, name);
	for (size_t i = 0; i < offcore->nr_registers; i++)
		if (!name_order(offcore->registers[i].name, name))
			return &offcore->registers[i];
	return NULL;
}

static const struct offcore_part *find_part(const struct known_offcore *offcore,
					    const struct offcore_part *parts, size_t nr, const char *name)
{
	/* A part's name takes precedence over another part's alias. */
	for (int own = 1; own >= 0; own--) {
		const char *wanted = own ? name : offcore_name(offcore, name);

		for (size_t i = 0; i < nr; i++)
			if (!name_order(parts[i].name, wanted))
				return &parts[i];
	}
	return NULL;
}

/* One kind of the parts of an off-core event, and the names given of that kind. */
struct kind {
	const char *name; /* "request" */
	const struct offcore_part *parts;
	size_t nr;
	char named[96]; /* "PF_RFO|DEMAND_RFO" */
};

static int refuse_part(const char *event, const struct piece *piece, const struct kind kinds[2],
		       struct refusal *refusal)
{
	struct nearest nearest;
	char names[400];
	size_t used = 0;

	refuse(refusal, STATUS_USAGE, "event '%s'", event);
	because(refusal,
		piece->text[0] ? "'%s' is no request and no response" : "a request or response is missing",
		piece->text);
	nearest_begin(&nearest, piece->text, 3);
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < kinds[k].nr && piece->text[0]; i++)
			nearest_offer(&nearest, kinds[k].parts[i].name);
	if (nearest_print(&nearest, names, sizeof(names)))
		return instead(refusal, "did you mean %s?", names);
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < kinds[k].nr && used < sizeof(names); i++)
			used += snprintf(names + used, sizeof(names) - used, "%s%s",
					 i   ? ", "
					 : k ? "; responses: "
					     : "requests: ",
					 kinds[k].parts[i].name);
	return instead(refusal, "%.380s", names);
}

/* Adds a note if libpfm4 encodes the name differently, which the table's contradictions tell. Only names with
 * ':' may come from libpfm4; Intel and perf write '.'. */
static void note_disagreement(const struct cpu_events *cpu, const char *spelling, const char *name,
			      struct composed *composed)
{
	for (size_t i = 0; i < cpu->nr_contradictions && strchr(spelling, ':'); i++) {
		const struct known_contradiction *entry = &cpu->contradictions[i];
		const char *claim = NULL;

		for (size_t s = 0; s < entry->nr_says; s++)
			if (!strcmp(entry->says[s].source, "libpfm4") &&
			    !strncmp(entry->says[s].claim, "0x", 2))
				claim = entry->says[s].claim;
		for (size_t n = 0; claim && n < entry->nr_names; n++)
			if (!name_order(entry->names[n], name))
				snprintf(composed->note, sizeof(composed->note),
					 "libpfm4 encodes %.40s otherwise: %.100s; here: %.140s", name, claim,
					 entry->we_do);
	}
}

/* The part that selects all: the one with the most bits (all requests, any response). If responses consist of
 * supplier and snoop bits, it is the response whose bit is neither. */
static const struct offcore_part *widest(const struct known_offcore *offcore, const struct kind *kind)
{
	__u64 sides = offcore_bits_of_kind(offcore, OFFCORE_SUPPLIER | OFFCORE_SNOOP);
	const struct offcore_part *most = kind->parts;

	for (size_t i = 0; i < kind->nr; i++) {
		if (sides && kind->parts == offcore->responses && !(kind->parts[i].bits & sides))
			return &kind->parts[i];
		if (__builtin_popcountll(kind->parts[i].bits) > __builtin_popcountll(most->bits))
			most = &kind->parts[i];
	}
	return most;
}

static void take_all(const struct known_offcore *offcore, struct kind *kind, struct composed *composed)
{
	const struct offcore_part *all = widest(offcore, kind);
	size_t used = strlen(composed->note);

	composed->config1 |= all->bits;
	snprintf(kind->named, sizeof(kind->named), "%s", all->name);
	snprintf(composed->note + used, sizeof(composed->note) - used,
		 "%sno %s is named: %s is taken, as libpfm4 does it", used ? "; " : "", kind->name,
		 all->name);
}

/* If responses consist of suppliers and snoops, one alone counts nothing: like libpfm4, takes every snoop
 * beside a supplier, and any response beside a snoop. */
static void take_other_side(const struct known_offcore *offcore, struct composed *composed)
{
	__u64 suppliers = offcore_bits_of_kind(offcore, OFFCORE_SUPPLIER);
	__u64 snoops = offcore_bits_of_kind(offcore, OFFCORE_SNOOP);
	__u64 responses = composed->config1 & offcore_responses(offcore);
	const struct kind kind = {"response", offcore->responses, offcore->nr_responses, ""};
	size_t used = strlen(composed->note);
	bool snoop = responses & snoops;

	if (!snoops || responses & ~(suppliers | snoops) || (responses & suppliers && snoop))
		return;
	composed->config1 |= snoop ? widest(offcore, &kind)->bits : snoops;
	snprintf(composed->note + used, sizeof(composed->note) - used,
		 "%sno %s is named: %s, as libpfm4 does it", used ? "; " : "", snoop ? "supplier" : "snoop",
		 snoop ? "any response is taken" : "all snoops are taken");
}

static bool add_part(const struct known_offcore *offcore, struct kind *kind, const char *word,
		     struct composed *composed)
{
	const struct offcore_part *part = find_part(offcore, kind->parts, kind->nr, word);
	size_t used = strlen(kind->named);

	if (!part)
		return false;
	composed->config1 |= part->bits;
	snprintf(kind->named + used, sizeof(kind->named) - used, "%s%s", used ? "|" : "", part->name);
	return true;
}

static int compose_offcore(const struct cpu_events *cpu, const char *name, struct composed *composed,
			   struct refusal *refusal)
{
	const struct known_offcore *offcore = cpu->offcore;
	const struct offcore_register *reg;
	struct piece piece;
	char whole[160];
	size_t at = 0, from;
	bool found;

	if (!offcore)
		return 0;
	next_piece(name, &at, ".:", &piece);
	reg = find_register(offcore, piece.text);
	if (!reg)
		return 0;
	struct kind kinds[2] = {{"request", offcore->requests, offcore->nr_requests, ""},
				{"response", offcore->responses, offcore->nr_responses, ""}};

	composed->config = reg->config;
	while (name[at]) {
		from = ++at;
		/* A response's name may contain dots: the longest match counts. */
		next_piece(name, &at, "|:", &piece);
		found = add_part(offcore, &kinds[1], piece.text, composed);
		if (!found) {
			at = from;
			next_piece(name, &at, "|.:", &piece);
			found = add_part(offcore, &kinds[0], piece.text, composed) ||
				add_part(offcore, &kinds[1], piece.text, composed);
		}
		if (!found) {
			composed->at = piece.at;
			return refuse_part(name, &piece, kinds, refusal);
		}
		snprintf(whole, sizeof(whole), "%s.%s", offcore->registers[0].name, piece.text);
		note_disagreement(cpu, name, whole, composed);
	}
	for (int k = 0; k < 2; k++)
		if (!kinds[k].named[0])
			take_all(offcore, &kinds[k], composed);
	take_other_side(offcore, composed);
	snprintf(composed->description, sizeof(composed->description),
		 "Off-core requests %.78s that are answered by %.78s", kinds[0].named, kinds[1].named);
	return 1;
}

/* --- several umasks --------------------------------------------------------------------------- */

static int refuse_umask(const char *name, const struct piece *piece, const char *why,
			struct composed *composed, struct refusal *refusal)
{
	composed->at = piece->at;
	refuse(refusal, STATUS_USAGE, "event '%s'", name);
	because(refusal, "%s %s", piece->text, why);
	return instead(refusal, "umasks can be combined that belong to one event code and have the "
				"same cmask, inv, edge and any");
}

static int refuse_second(const char *name, const struct piece *piece, struct composed *composed,
			 struct refusal *refusal)
{
	composed->at = piece->at;
	refuse(refusal, STATUS_USAGE, "event '%s'", name);
	because(refusal, "%s and an umask before it exclude each other", piece->text);
	return instead(refusal, "leave out one of them");
}

/* Sets what the row is about in the umask composed so far. `fields` has the bits that rows before it are
 * about. Two names of a field exclude each other if they have bits in common, like 0x40 for a core and 0xC0
 * for both, or if one has none. Returns false then. */
static bool add_umask(const struct known_event *row, __u64 *fields, struct composed *composed)
{
	__u64 field = row->umask_field ? (__u64)row->umask_field << UMASK_SHIFT : UMASK_BITS;
	__u64 own = row->config & field, before = composed->config & field;
	bool taken = *fields & field;

	if (taken && row->umask_field && own != before && (!own || !before || own & before))
		return false;
	composed->config = taken ? composed->config | own : (composed->config & ~field) | own;
	*fields |= field;
	return true;
}

/* Whether nothing can be added to what the row counts. */
static bool is_alone(const struct known_event *row)
{
	return row->config1 || row->fixed_counter >= 0 || !(row->config & UMASK_BITS || row->umask_field);
}

static void describe_row(const struct known_event *row, bool limits, struct composed *composed)
{
	size_t used = strlen(composed->description);

	snprintf(composed->description + used, sizeof(composed->description) - used, "%s%s",
		 limits ? "; and: "
		 : used ? "; or: "
			: "",
		 row->description);
}

/* The pieces of a name with several umasks, as far as they are read. */
struct umasks {
	const char *name;
	struct piece first, piece;
	__u64 fields; /* bits of the umask that the pieces before are about */
};

static int take_umask(const struct known_event *row, struct umasks *umasks, struct composed *composed,
		      struct refusal *refusal)
{
	bool limits = umasks->fields && row->umask_field &&
		      !(umasks->fields & (__u64)row->umask_field << UMASK_SHIFT);

	if (row == composed->known) /* the same one twice is once */
		return 1;
	if (!composed->known) {
		umasks->first = umasks->piece;
		composed->known = row;
		composed->config = row->config;
	}
	if (row != composed->known && (is_alone(row) || is_alone(composed->known)))
		return refuse_umask(umasks->name, is_alone(row) ? &umasks->piece : &umasks->first,
				    "stands for itself", composed, refusal);
	if ((row->config ^ composed->config) & ~UMASK_BITS)
		return refuse_umask(umasks->name, &umasks->piece,
				    "counts in another way than those before it", composed, refusal);
	if (!add_umask(row, &umasks->fields, composed))
		return refuse_second(umasks->name, &umasks->piece, composed, refusal);
	describe_row(row, limits, composed);
	return 1;
}

/* EVENT.A|B, EVENT:A:B, EVENT.A.B, all of which libpfm4 takes. Umasks can be combined if the counter adds up
 * what they select, and everything else is equal. Umasks about different fields limit each other instead. */
static int compose_umasks(const struct cpu_events *cpu, const char *name, struct composed *composed,
			  struct refusal *refusal)
{
	struct umasks umasks = {.name = name};
	struct piece base;
	size_t at = 0;
	char whole[200], end;

	if (!next_piece(name, &at, ".:", &base))
		return 0;
	do {
		const struct known_event *row = NULL;
		size_t from = ++at;

		/* A umask's name may contain dots, and dots may separate umasks: the longest match counts. */
		for (const char *const *ends = (const char *const[]){"|:", "|.:", NULL}; *ends && !row;
		     ends++) {
			at = from;
			end = next_piece(name, &at, *ends, &umasks.piece);
			snprintf(whole, sizeof(whole), "%s.%s", base.text, umasks.piece.text);
			row = known_event_find(cpu, whole);
		}
		if (!row && !composed->known)
			return 0;
		if (!row)
			return refuse_umask(name, &umasks.piece, "is no umask of this event, and no modifier",
					    composed, refusal);
		if (take_umask(row, &umasks, composed, refusal) < 0)
			return -1;
		note_disagreement(cpu, name, row->name, composed);
	} while (end);
	return 1;
}

/* Whether the row or alias belongs to the event: EVENT itself, or EVENT.UMASK. */
static bool is_of(const char *row, const char *event)
{
	size_t length = strlen(event);

	return !strncasecmp(row, event, length) && (!row[length] || row[length] == '.');
}

/* Finds the code of an event, by the rows that belong to it, or by the aliases if there are no rows. Returns
 * 0 if there are none, 1 if all have the same code, and more if they have not; then `other` is one of the
 * other codes. */
static int codes_of(const struct cpu_events *cpu, const char *event, __u64 *code, __u64 *other)
{
	bool rows = false;
	int found = 0;

	for (size_t i = 0; i < cpu->nr_events + cpu->nr_aliases; i++) {
		bool alias = i >= cpu->nr_events;
		const char *name = alias ? cpu->aliases[i - cpu->nr_events].name : cpu->events[i].name;
		const struct known_event *row;

		if (!is_of(name, event) || (alias && rows))
			continue;
		rows |= !alias;
		row = alias ? known_event_find(cpu, name) : &cpu->events[i];
		if (!found || (row->config & 0xff) != *code) {
			*(found ? other : code) = row->config & 0xff;
			found++;
		}
	}
	return found;
}

int compose_umask(const struct cpu_events *cpu, const char *name, __u64 umask, struct composed *composed,
		  struct refusal *refusal)
{
	const struct offcore_register *reg = cpu && cpu->offcore ? find_register(cpu->offcore, name) : NULL;
	__u64 code = 0, other = 0;
	int codes = cpu && !reg ? codes_of(cpu, name, &code, &other) : 0;

	*composed = (struct composed){0};
	if (reg) {
		composed->config = reg->config;
		composed->config1 = umask;
		snprintf(composed->description, sizeof(composed->description),
			 "Off-core requests and responses of the bits 0x%llx", umask);
		return 1;
	}
	if (!codes)
		return 0;
	if (codes > 1 || umask > 0xff) {
		refuse(refusal, STATUS_USAGE, "event '%s:0x%llx'", name, umask);
		if (umask > 0xff)
			because(refusal, "a umask has 8 bits");
		else
			because(refusal, "%s has the codes 0x%02llx and 0x%02llx", name, code, other);
		return instead(refusal, "write cpu/event=0x%02llx,umask=0x%02llx/", code, umask & 0xff);
	}
	composed->config = code | umask << 8;
	for (size_t i = 0; i < cpu->nr_events && !composed->known; i++)
		if (cpu->events[i].config == composed->config && !cpu->events[i].config1)
			composed->known = &cpu->events[i];
	snprintf(composed->description, sizeof(composed->description), "%.60s with the umask 0x%02llx%s%s",
		 name, umask, composed->known ? ": " : "",
		 composed->known ? composed->known->description : "");
	return 1;
}

/* --- all of them ------------------------------------------------------------------------------ */

int compose_event(const struct cpu_events *cpu, const char *name, struct composed *composed,
		  struct refusal *refusal)
{
	const struct known_event *row = known_event_find(cpu, name);
	int found;

	*composed = (struct composed){0};
	if (!cpu)
		return 0;
	if (row) {
		composed->config = row->config;
		composed->config1 = row->config1;
		composed->known = row;
		snprintf(composed->description, sizeof(composed->description), "%s", row->description);
		note_disagreement(cpu, name, row->name, composed);
		return 1;
	}
	found = compose_offcore(cpu, name, composed, refusal);
	return found ? found : compose_umasks(cpu, name, composed, refusal);
}
