// SPDX-License-Identifier: GPL-2.0-only
#include "naming/ksymbols.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define FOREVER (~0ULL)

static bool symbols_overlap(const struct ksymbol *a, const struct ksymbol *b)
{
	return a->begin < b->end && b->begin < a->end;
}

/* Ends what was at the new code's addresses before: its own note of going may be lost. Notes of two CPUs may
 * be read in the wrong order, so what has come since stays, and ends the new code. */
static void end_others(struct ksymbols *ksymbols, struct ksymbol *new)
{
	for (size_t i = 0; i < ksymbols->nr; i++) {
		struct ksymbol *old = &ksymbols->list[i];

		if (!symbols_overlap(old, new))
			continue;
		ksymbols->replaced = true;
		if (old->since > new->since)
			new->until = old->since < new->until ? old->since : new->until;
		else if (old->until > new->since)
			old->until = new->since;
	}
}

/* Ends the code that goes. Returns whether it was known. */
static bool end_known(struct ksymbols *ksymbols, const struct ksymbol *gone)
{
	bool known = false;

	for (size_t i = 0; i < ksymbols->nr; i++) {
		struct ksymbol *old = &ksymbols->list[i];

		if (!symbols_overlap(old, gone) || old->since > gone->until || old->until < gone->until)
			continue;
		known |= old->begin == gone->begin;
		old->until = gone->until;
	}
	return known;
}

void ksymbols_take(struct ksymbols *ksymbols, const struct sideband_note *note)
{
	struct ksymbol symbol = {
		.begin = note->begin,
		.end = note->begin + note->size,
		.since = note->gone ? 0 : note->time,
		.until = note->gone ? note->time : FOREVER,
		.module = note->bpf ? "[bpf]" : "[kernel]",
	};

	ksymbols->changes++;
	if (!note->gone)
		end_others(ksymbols, &symbol);
	/* Code that goes and was not seen to come was there before the first note. */
	else if (end_known(ksymbols, &symbol))
		return;
	if (ksymbols->nr == KSYMBOLS_MOST)
		ksymbols_forget(ksymbols, note->time);
	if (ksymbols->nr == KSYMBOLS_MOST)
		return;
	symbol.name = xstrdup(note->symbol);
	ksymbols->list = xroom(ksymbols->list, ksymbols->nr, &ksymbols->room, sizeof(*ksymbols->list));
	ksymbols->list[ksymbols->nr++] = symbol;
}

bool ksymbols_replaced(struct ksymbols *ksymbols)
{
	bool replaced = ksymbols->replaced;

	ksymbols->replaced = false;
	return replaced;
}

const struct ksymbol *ksymbols_find(const struct ksymbols *ksymbols, __u64 address, __u64 since,
				    bool *ambiguous)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), longest = 0;
	const struct ksymbol *found = NULL;

	*ambiguous = false;
	for (size_t i = 0; i < ksymbols->nr; i++) {
		const struct ksymbol *symbol = &ksymbols->list[i];
		__u64 begin = symbol->since > since ? symbol->since : since;
		__u64 end = symbol->until < now ? symbol->until : now;

		if (address < symbol->begin || address >= symbol->end || end <= begin)
			continue;
		*ambiguous |= found && strcmp(found->name, symbol->name);
		if (end - begin <= longest)
			continue;
		longest = end - begin;
		found = symbol;
	}
	return found;
}

void ksymbols_forget(struct ksymbols *ksymbols, __u64 since)
{
	size_t kept = 0;

	for (size_t i = 0; i < ksymbols->nr; i++)
		if (ksymbols->list[i].until > since)
			ksymbols->list[kept++] = ksymbols->list[i];
		else
			free((char *)ksymbols->list[i].name);
	ksymbols->nr = kept;
}

void ksymbols_release(struct ksymbols *ksymbols)
{
	ksymbols_forget(ksymbols, FOREVER);
	for (size_t i = 0; i < ksymbols->nr; i++)
		free((char *)ksymbols->list[i].name);
	free(ksymbols->list);
	*ksymbols = (struct ksymbols){0};
}
