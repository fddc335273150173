// SPDX-License-Identifier: GPL-2.0-only
#include "event/compose.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "event/names.h"

#define UMASK_BITS 0xff00ULL

/* A piece of a name: up to the next of these characters. */
struct piece {
	char text[96];
	size_t at; /* in the name */
};

/* The piece at *at; moves *at behind it and returns the character that ends it. */
static char next_piece(const char *name, size_t *at, const char *ends, struct piece *piece)
{
	size_t length = strcspn(name + *at, ends);

	piece->at = *at;
	snprintf(piece->text, sizeof(piece->text), "%.*s", (int)length, name + *at);
	*at += length;
	return name[*at];
}

/* --- off-core responses ----------------------------------------------------------------------- */

/* The name that the table has for a register, request or response. */
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
	/* A part's own name goes before an alias of another one. */
	for (int own = 1; own >= 0; own--) {
		const char *wanted = own ? name : offcore_name(offcore, name);

		for (size_t i = 0; i < nr; i++)
			if (!name_order(parts[i].name, wanted))
				return &parts[i];
	}
	return NULL;
}

static int refuse_part(const char *event, const struct piece *piece, const char *kind,
		       const struct offcore_part *parts, size_t nr, struct refusal *refusal)
{
	struct nearest nearest;
	char names[400];

	refuse(refusal, STATUS_USAGE, "event '%s'", event);
	because(refusal, piece->text[0] ? "'%2$s' is no %1$s" : "its %1$s is missing", kind, piece->text);
	nearest_begin(&nearest, piece->text, 3);
	for (size_t i = 0; i < nr && piece->text[0]; i++)
		nearest_offer(&nearest, parts[i].name);
	if (nearest_print(&nearest, names, sizeof(names)))
		return instead(refusal, "did you mean %s?", names);
	for (size_t i = 0, used = 0; i < nr && used < sizeof(names); i++)
		used += snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", parts[i].name);
	return instead(refusal, "%ss: %.380s", kind, names);
}

/* "A|B" up to the next separator or the end: ORs the bits of the parts, and joins their names. */
static int compose_parts(const struct known_offcore *offcore, const char *name, size_t *at, const char *kind,
			 const struct offcore_part *parts, size_t nr, struct composed *composed,
			 struct refusal *refusal)
{
	for (;; ++*at) {
		const struct offcore_part *part;
		struct piece piece;
		char end = next_piece(name, at, "|.:", &piece);

		part = find_part(offcore, parts, nr, piece.text);
		if (!part) {
			composed->at = piece.at;
			return refuse_part(name, &piece, kind, parts, nr, refusal);
		}
		composed->config1 |= part->bits;
		if (end != '|')
			return 0;
	}
}

static int compose_offcore(const struct known_offcore *offcore, const char *name, struct composed *composed,
			   struct refusal *refusal)
{
	const struct offcore_register *reg;
	struct piece piece;
	size_t at = 0, requests;

	if (!offcore)
		return 0;
	next_piece(name, &at, ".:", &piece);
	reg = find_register(offcore, piece.text);
	if (!reg)
		return 0;
	composed->config = reg->config;
	requests = at += name[at] != '\0';
	if (compose_parts(offcore, name, &at, "request", offcore->requests, offcore->nr_requests, composed,
			  refusal))
		return -1;
	snprintf(composed->description, sizeof(composed->description),
		 "Off-core requests %.*s that are answered by %s", (int)(at - requests), name + requests,
		 name[at] ? name + at + 1 : "");
	at += name[at] != '\0';
	if (compose_parts(offcore, name, &at, "response", offcore->responses, offcore->nr_responses, composed,
			  refusal))
		return -1;
	if (!name[at])
		return 1;
	composed->at = at;
	refuse(refusal, STATUS_USAGE, "event '%s'", name);
	because(refusal, "'%s' comes behind the response, where nothing may", name + at);
	return instead(refusal, "write %s:REQUEST|…:RESPONSE|…", reg->name);
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

/* EVENT.A|B: the umasks select things that one counter adds up, as long as all else is equal. */
static int compose_umasks(const struct cpu_events *cpu, const char *name, struct composed *composed,
			  struct refusal *refusal)
{
	struct piece base, piece;
	size_t at = 0, used = 0;
	char whole[200], end;

	if (!next_piece(name, &at, ".:", &base) || !strchr(name, '|'))
		return 0;
	do {
		const struct known_event *row;

		at++;
		end = next_piece(name, &at, "|", &piece);
		snprintf(whole, sizeof(whole), "%s.%s", base.text, piece.text);
		row = known_event_find(cpu, whole);
		if (!row && !composed->known)
			return 0;
		if (!row)
			return refuse_umask(name, &piece, "is no umask of this event", composed, refusal);
		if (row->config1 || row->fixed_counter >= 0 || !(row->config & UMASK_BITS))
			return refuse_umask(name, &piece, "stands for itself", composed, refusal);
		if (composed->known && (row->config ^ composed->config) & ~UMASK_BITS)
			return refuse_umask(name, &piece, "counts in another way than those before it",
					    composed, refusal);
		if (!composed->known)
			composed->known = row;
		composed->config |= row->config;
		used += snprintf(composed->description + used, sizeof(composed->description) - used, "%s%s",
				 used ? "; or: " : "", row->description);
		if (used >= sizeof(composed->description))
			used = sizeof(composed->description) - 1;
	} while (end == '|');
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
		return 1;
	}
	found = compose_offcore(cpu->offcore, name, composed, refusal);
	return found ? found : compose_umasks(cpu, name, composed, refusal);
}
