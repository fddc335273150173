// SPDX-License-Identifier: GPL-2.0-only
#include "event/escr.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alternatives.h"
#include "base/memory.h"
#include "event/unit.h"
#include "event/unit_terms.h"

/* --- terms ------------------------------------------------------------------------------------ */

static bool is_term(const char *term, size_t length, const char *name)
{
	return length > strlen(name) && !strncmp(term, name, strlen(name)) && term[strlen(name)] == '=';
}

static __u64 most_of(const struct known_unit *unit)
{
	return (1ULL << unit->count_bits) - 1;
}

static int take_overflow(struct event *event, const char *term, size_t length, struct refusal *refusal)
{
	const char *value = strchr(term, '=') + 1;
	char *end;
	__u64 number;

	errno = 0;
	number = strtoull(value, &end, 0);
	if (end != term + length || !isdigit((unsigned char)*value) || errno || !number ||
	    number > most_of(event->msr)) {
		unit_refuse_term(event, term, length, refusal);
		because(refusal, "a counter of %u bits overflows after 1 to 0x%llx occurrences",
			event->msr->count_bits, most_of(event->msr));
		return instead(refusal, "overflow=1000000");
	}
	EVENT_SET(event, config1, number, "overflow=%llu: occurrences until the counter overflows", number);
	return 1;
}

static int take_metric(struct event *event, const char *term, size_t length, struct refusal *refusal)
{
	const char *value = strchr(term, '=') + 1;
	size_t name = term + length - value;
	struct alternatives alternatives;

	alternatives_begin(&alternatives, value, name);
	for (size_t i = 0; i < event->kind->nr_metrics; i++) {
		const struct unit_metric *metric = &event->kind->metrics[i];

		if (strlen(metric->name) == name && !strncmp(metric->name, value, name)) {
			event->metric = metric;
			return 1;
		}
		alternatives_offer(&alternatives, metric->name);
	}
	unit_refuse_term(event, term, length, refusal);
	because(refusal, "there is no such metric");
	return alternatives_end(&alternatives, refusal, "metrics: %s", alternatives.all);
}

int escr_term(struct event *event, const char *term, size_t length, struct refusal *refusal)
{
	if (is_term(term, length, "overflow"))
		return take_overflow(event, term, length, refusal);
	if (event->kind->nr_metrics && is_term(term, length, "metric"))
		return take_metric(event, term, length, refusal);
	return 0;
}

/* The bits of the unit's field of this name; 0 if there is none. */
static __u64 bits_of(const struct known_unit *unit, const char *name)
{
	for (size_t f = 0; f < unit->nr_fields; f++)
		if (!strcmp(unit->fields[f].name, name))
			return unit_field_most(&unit->fields[f]) << unit->fields[f].low;
	return 0;
}

int escr_check(const struct event *event, struct refusal *refusal)
{
	const struct known_unit *unit = event->msr;
	const struct unit_kind *kind = event->kind;
	const char *why = NULL, *add = NULL;

	if (!(event->attr.config & ESCR_MASKS)) {
		why = "it selects nothing of its event, and would count nothing";
		add = kind->fields[0].name;
	} else if (!(event->attr.config & (bits_of(unit, "t0") | bits_of(unit, "t1")))) {
		why = "it counts on no level of no thread";
		add = "t0=all";
	} else if (kind->nr_metrics && !event->metric) {
		why = "it counts what a metric marks, and has none";
	}
	if (!why)
		return 0;
	refuse(refusal, STATUS_USAGE, "event '%s'", event->name);
	because(refusal, "%s", why);
	according(refusal, "%s", unit->source);
	return add ? instead(refusal, "add a term: %s/%s,%s/", unit->name, kind->name, add)
		   : instead(refusal, "add a term: metric=%s", kind->metrics[0].name);
}

void escr_begin(struct event *event)
{
	const struct unit_escr *escr = event->kind->escrs;

	while (!(escr->counters >> event->unit_counter & 1) ||
	       event->msr->counters[event->unit_counter].unusable)
		event->unit_counter++;
}

/* --- counters --------------------------------------------------------------------------------- */

static bool cascades(const struct event *event)
{
	return event->attr.config & CCCR_CASCADE;
}

const struct event *escr_starter(const struct events *events, const struct event *event)
{
	while (event-- > events->list)
		if (event->msr && event->msr->counters && event->attr.config1)
			return event;
	return NULL;
}

/* How the overflow of the starter's counter starts this counter; NULL if it can't, or if the event has no
 * starter. */
static const struct unit_start *start_of(const struct events *events, const struct event *event, int counter)
{
	const struct unit_counter *own = &event->msr->counters[counter];
	const struct event *starter = escr_starter(events, event);

	for (size_t i = 0; starter && i < own->nr_after; i++)
		if (own->after[i].counter == starter->unit_counter)
			return &own->after[i];
	return NULL;
}

/* Whether the event can have this ESCR and this counter, given those of the events before it. */
static bool free_for(const struct events *events, const struct event *event, __u32 escr, int counter)
{
	if (event->msr->counters[counter].unusable)
		return false;
	for (const struct event *other = events->list; other < event; other++)
		if (other->msr == event->msr && other->unit_counter >= 0 &&
		    (other->unit_counter == counter || other->kind->escrs[other->unit_escr].msr == escr))
			return false;
	return !cascades(event) || start_of(events, event, counter);
}

/* Assigns counters to the events from this one up to, but not including, `end`, except those in `given_up`.
 * Tries all combinations. */
static bool place_events(const struct events *events, struct event *event, const struct event *end,
			 const bool *given_up)
{
	while (event < end && (!event->msr || !event->msr->counters || given_up[event - events->list]))
		event++;
	if (event == end)
		return true;
	for (size_t e = 0; e < event->kind->nr_escrs; e++)
		for (size_t c = 0; c < event->msr->nr_counters; c++) {
			const struct unit_escr *escr = &event->kind->escrs[e];

			if (!(escr->counters >> c & 1) || !free_for(events, event, escr->msr, (int)c))
				continue;
			event->unit_counter = (int)c;
			event->unit_escr = (int)e;
			if (place_events(events, event + 1, end, given_up))
				return true;
		}
	event->unit_counter = -1;
	return false;
}

void escr_place(struct events *events)
{
	bool *given_up = xcalloc(events->nr + 1, sizeof(*given_up));

	for (size_t i = 0; i < events->nr; i++) {
		struct event *event = &events->list[i];

		if (!event->msr || !event->msr->counters)
			continue;
		event->unit_counter = -1;
		given_up[i] = !place_events(events, events->list, event + 1, given_up);
		if (given_up[i])
			place_events(events, events->list, event, given_up);
	}
	free(given_up);
	for (size_t i = 0; i < events->nr; i++) {
		struct event *event = &events->list[i];

		if (!event->msr || !event->msr->counters || event->unit_counter < 0)
			continue;
		if (cascades(event))
			event->start = start_of(events, event, event->unit_counter);
		snprintf(event->counter, sizeof(event->counter), "%.8s %hhd", event->msr->name,
			 (signed char)event->unit_counter);
	}
}

/* --- registers -------------------------------------------------------------------------------- */

/* A counter that cascades is not enabled here: another counter's overflow enables it. */
__u32 escr_cccr(const struct event *event, bool counts)
{
	__u32 value = CCCR_VALUE(event->attr.config);

	if (event->start && event->start->by)
		value ^= CCCR_CASCADE | CCCR_EXTENDED;
	return value | (counts && !cascades(event) ? CCCR_ENABLE : 0);
}

__u64 escr_start(const struct event *event)
{
	return -event->attr.config1 & most_of(event->msr);
}

static struct register_value *add_register(struct registers *registers, const char *name, __u32 msr,
					   __u64 value)
{
	struct register_value *reg = &registers->list[registers->nr++];

	*reg = (struct register_value){.name = name, .msr = msr, .value = value, .mask = ~0ULL};
	return reg;
}

/* Adds the fields whose bits are among the 32 bits of the selection from `base` on. */
static void add_fields(struct register_value *reg, const struct unit_field *fields, size_t nr, int base)
{
	for (size_t f = 0; f < nr; f++) {
		const struct unit_field *field = &fields[f];
		__u64 value;

		if (field->low < base || field->low >= base + 32)
			continue;
		value = reg->value >> (field->low - base) & unit_field_most(field);
		unit_add_field(reg, field->title, unit_meaning(field, value), field->low - base,
			       field->high - base);
	}
}

static void add_cccr(struct registers *registers, const struct event *event, bool counts)
{
	const struct unit_counter *counter = &event->msr->counters[event->unit_counter];
	struct register_value *reg =
		add_register(registers, counter->cccr, counter->cccr_msr, escr_cccr(event, counts));

	unit_add_field(reg, "Enable", counts ? "the counter counts" : "the counter stands still", 12, 12);
	unit_add_field(reg, "ESCR_Select", event->kind->escrs[event->unit_escr].name, CCCR_SELECT,
		       CCCR_SELECT + 2);
	if (event->start && event->start->by)
		unit_add_field(reg, event->start->by, "counts from that counter's overflow on", 11, 11);
	unit_add_field(reg, "Active_Thread", "has to be 3: whichever threads are active", 16, 17);
	add_fields(reg, event->msr->fields, event->msr->nr_fields, 0);
}

void escr_registers(const struct event *event, struct registers *registers)
{
	const struct known_unit *unit = event->msr;
	const struct unit_counter *counter = &unit->counters[event->unit_counter];
	const struct unit_escr *escr = &event->kind->escrs[event->unit_escr];
	struct register_value *reg;

	add_cccr(registers, event, false);
	reg = add_register(registers, escr->name, escr->msr, ESCR_VALUE(event->attr.config));
	add_fields(reg, unit->fields, unit->nr_fields, 32);
	add_fields(reg, event->kind->fields, event->kind->nr_fields, 32);
	unit_add_field(reg, "Event_Select", event->kind->name, ESCR_EVENT - 32, ESCR_EVENT - 32 + 5);
	for (size_t r = 0; event->metric && r < unit->nr_replay; r++) {
		reg = add_register(registers, unit->replay[r].name, unit->replay[r].value,
				   r ? event->metric->matrix : event->metric->enable);
		unit_add_field(reg, event->metric->name, event->metric->description, 0, 31);
	}
	reg = add_register(registers, counter->name, counter->msr, escr_start(event));
	unit_add_field(reg, "count",
		       event->attr.config1 ? "so many below an overflow" : "counting begins here", 0,
		       (int)unit->count_bits - 1);
	if (!cascades(event))
		add_cccr(registers, event, true);
}
