// SPDX-License-Identifier: GPL-2.0-only
#include "event/unit.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alternatives.h"
#include "base/list.h"
#include "base/nearest.h"
#include "event/escr.h"
#include "event/unit_terms.h"
#include "tables/names.h"

/* --- terms ------------------------------------------------------------------------------------ */

static void put_field(struct event *event, const struct unit_field *field, __u64 value)
{
	event->attr.config &= ~(unit_field_most(field) << field->low);
	event->attr.config |= value << field->low;
}

static const struct unit_number *find_value(const struct unit_field *field, const char *name, size_t length)
{
	for (size_t i = 0; i < field->nr_values; i++)
		if (strlen(field->values[i].name) == length && !strncmp(field->values[i].name, name, length))
			return &field->values[i];
	return NULL;
}

#define FEW_KINDS 8

static int refuse_kind(const struct event *event, const struct known_unit *unit, const char *name,
		       size_t length, struct refusal *refusal)
{
	char wanted[64], known[200] = "";
	struct nearest nearest;

	refuse(refusal, STATUS_USAGE, "event '%s'", event->name);
	because(refusal, "its first term has to say what '%s' is to count", unit->name);
	for (size_t i = 0; unit->nr_kinds <= FEW_KINDS && i < unit->nr_kinds; i++)
		list_append(known, sizeof(known), unit->kinds[i].name);
	if (known[0])
		return instead(refusal, "write one of %s, as in %s/%s/", known, unit->name,
			       unit->kinds[0].name);
	snprintf(wanted, sizeof(wanted), "%.*s", (int)length, name);
	nearest_begin(&nearest, wanted, 3);
	for (size_t i = 0; i < unit->nr_kinds; i++)
		nearest_offer(&nearest, unit->kinds[i].name);
	return nearest_print(&nearest, known, sizeof(known))
		       ? instead(refusal, "did you mean %s?", known)
		       : instead(refusal, "nhmtap list %s shows what it can count", unit->name);
}

static int refuse_field(const struct event *event, const char *term, size_t length, struct refusal *refusal)
{
	struct alternatives alternatives;

	alternatives_begin(&alternatives, term, strcspn(term, "=,/"));
	for (size_t i = 0; i < event->kind->nr_fields; i++)
		alternatives_offer(&alternatives, event->kind->fields[i].name);
	for (size_t i = 0; i < event->msr->nr_fields; i++)
		alternatives_offer(&alternatives, event->msr->fields[i].name);
	if (event->msr->counters)
		alternatives_offer(&alternatives, "overflow");
	if (event->kind->nr_metrics)
		alternatives_offer(&alternatives, "metric");
	alternatives_offer(&alternatives, "name");
	unit_refuse_term(event, term, length, refusal);
	because(refusal, "%s of '%s' has no such term", event->kind->name, event->msr->name);
	return alternatives_end(&alternatives, refusal, "terms: %s", alternatives.all);
}

static int refuse_value(const struct event *event, const struct unit_field *field, const char *value,
			size_t length, struct refusal *refusal)
{
	struct alternatives alternatives;

	alternatives_begin(&alternatives, value, length);
	for (size_t i = 0; i < field->nr_values; i++)
		alternatives_offer(&alternatives, field->values[i].name);
	unit_refuse_term(event, field->name, strlen(field->name), refusal);
	because(refusal, "it has no value '%.*s'", (int)length, value);
	return alternatives_end(&alternatives, refusal, "values: %s%sa number up to 0x%llx", alternatives.all,
				*alternatives.all ? ", or " : "", unit_field_most(field));
}

/* Parses a field's value: "hit+hitm", "0x6". */
static int read_value(const struct event *event, const struct unit_field *field, const char *text,
		      size_t length, __u64 *value, struct refusal *refusal)
{
	const char *end = text + length;

	*value = 0;
	for (const char *at = text; at <= end;) {
		size_t part = strcspn(at, "+,/");
		const struct unit_number *known;
		char *stop;

		part = at + part > end ? (size_t)(end - at) : part;
		known = find_value(field, at, part);
		if (known) {
			*value |= known->value;
		} else {
			errno = 0;
			*value |= strtoull(at, &stop, 0);
			if (!part || stop != at + part || !isdigit((unsigned char)*at) || errno ||
			    *value > unit_field_most(field))
				return refuse_value(event, field, text, length, refusal);
		}
		at += part + 1;
	}
	return 0;
}

static const struct unit_field *find_field(const struct unit_field *fields, size_t nr, const char *name,
					   size_t length)
{
	for (size_t i = 0; i < nr; i++)
		if (strlen(fields[i].name) == length && !strncmp(fields[i].name, name, length))
			return &fields[i];
	return NULL;
}

static int apply_term(struct event *event, const char *term, size_t length, struct refusal *refusal)
{
	size_t name = strcspn(term, "=,/");
	const struct unit_field *field;
	__u64 value = 1;
	int err = event->msr->counters ? escr_term(event, term, length, refusal) : 0;

	if (err)
		return err < 0 ? -1 : 0;
	name = name > length ? length : name;
	if (name == 4 && !strncmp(term, "name", name) && length > name) {
		snprintf(event->name, sizeof(event->name), "%.*s", (int)(length - name - 1), term + name + 1);
		return 0;
	}
	field = find_field(event->kind->fields, event->kind->nr_fields, term, name);
	if (!field)
		field = find_field(event->msr->fields, event->msr->nr_fields, term, name);
	if (!field)
		return refuse_field(event, term, name, refusal);
	if (length > name && read_value(event, field, term + name + 1, length - name - 1, &value, refusal))
		return -1;
	if (length == name && field->high > field->low)
		return refuse_value(event, field, "", 0, refusal);
	put_field(event, field, value);
	event->attr.config |= field->sets;
	return 0;
}

/* --- the event -------------------------------------------------------------------------------- */

/* The first counter of a kind, by its number within the unit. */
static int first_counter(const struct known_unit *unit, const struct unit_kind *kind)
{
	int first = 0;

	for (const struct unit_kind *before = unit->kinds; before < kind; before++)
		first += before->nr_counters;
	return first;
}

/* Gives fields the values that they have if no term sets them. */
static void put_usual(struct event *event, const struct unit_field *fields, size_t nr, bool two_threads)
{
	for (size_t f = 0; f < nr; f++) {
		const char *usual =
			two_threads && fields[f].usual_smt ? fields[f].usual_smt : fields[f].usual;

		if (usual)
			put_field(event, &fields[f], find_value(&fields[f], usual, strlen(usual))->value);
	}
}

static int begin_event(struct event *event, const struct known_unit *unit, bool two_threads, const char *name,
		       size_t length, struct refusal *refusal)
{
	event->msr = unit;
	for (size_t i = 0; i < unit->nr_kinds; i++)
		if (strlen(unit->kinds[i].name) == length && !strncmp(unit->kinds[i].name, name, length))
			event->kind = &unit->kinds[i];
	if (!event->kind)
		return refuse_kind(event, unit, name, length, refusal);
	if (unit->counters)
		escr_begin(event);
	else
		event->unit_counter = first_counter(unit, event->kind);
	snprintf(event->description, sizeof(event->description), "%s", event->kind->description);
	EVENT_SET(event, config, event->kind->always, "the terms, as %s has them", unit->source);
	put_usual(event, unit->fields, unit->nr_fields, two_threads);
	put_usual(event, event->kind->fields, event->kind->nr_fields, two_threads);
	return 0;
}

int unit_event(struct event *event, const struct known_unit *unit, bool two_threads, const char *terms,
	       size_t *at, struct refusal *refusal)
{
	for (*at = 0;; ++*at) {
		size_t length = strcspn(terms + *at, ",");
		const char *term = terms + *at;

		if (*at ? apply_term(event, term, length, refusal)
			: begin_event(event, unit, two_threads, term, length, refusal))
			return -1;
		if (!term[length])
			break;
		*at += length;
	}
	*at = 0;
	if (unit->counters)
		return escr_check(event, refusal);
	if (event->attr.config != event->kind->always)
		return 0;
	refuse(refusal, STATUS_USAGE, "event '%s'", event->name);
	because(refusal, "it selects nothing, and would count nothing");
	according(refusal, "%s", unit->source);
	return instead(refusal, "add a term: %s/%s,%s=%s/", unit->name, event->kind->name,
		       event->kind->fields[0].name,
		       event->kind->fields[0].nr_values ? event->kind->fields[0].values[0].name : "1");
}

/* --- counters --------------------------------------------------------------------------------- */

const struct unit_number *unit_counter_of(const struct event *event)
{
	return &event->kind->counters[event->unit_counter - first_counter(event->msr, event->kind)];
}

void units_place(struct events *events)
{
	escr_place(events);
	for (size_t i = 0; i < events->nr; i++) {
		struct event *event = &events->list[i];
		size_t before = 0;

		if (!event->msr || event->msr->counters)
			continue;
		for (size_t j = 0; j < i; j++)
			before += events->list[j].kind == event->kind;
		event->unit_counter = before < event->kind->nr_counters
					      ? first_counter(event->msr, event->kind) + (int)before
					      : -1;
		snprintf(event->counter, sizeof(event->counter), "%.8s %zu", event->kind->name, before);
	}
}

size_t unit_own_registers(const struct event *event, struct own_register *list)
{
	const struct known_unit *unit = event->msr;
	const struct unit_counter *counter;
	size_t nr = 0;

	if (!unit->counters) {
		*list = (struct own_register){unit_counter_of(event)->value, event->attr.config,
					      ~((1ULL << unit->count_bits) - 1)};
		return 1;
	}
	counter = &unit->counters[event->unit_counter];
	list[nr++] =
		(struct own_register){counter->cccr_msr, escr_cccr(event, false),
				      (__u32) ~(CCCR_ENABLE | CCCR_CASCADE | CCCR_EXTENDED | CCCR_OVERFLOW)};
	list[nr++] = (struct own_register){event->kind->escrs[event->unit_escr].msr,
					   ESCR_VALUE(event->attr.config), ~0ULL};
	for (size_t r = 0; event->metric && r < unit->nr_replay; r++)
		list[nr++] = (struct own_register){unit->replay[r].value,
						   r ? event->metric->matrix : event->metric->enable, ~0ULL};
	list[nr++] = (struct own_register){counter->msr, escr_start(event), 0};
	return nr;
}

struct unit_number unit_register(const struct known_unit *unit, size_t which)
{
	if (unit->counters && which < unit->nr_counters)
		return (struct unit_number){unit->counters[which].cccr, unit->counters[which].cccr_msr};
	for (size_t k = 0; !unit->counters && k < unit->nr_kinds; which -= unit->kinds[k++].nr_counters)
		if (which < unit->kinds[k].nr_counters)
			return unit->kinds[k].counters[which];
	return (struct unit_number){0};
}

bool unit_in_use(const struct known_unit *unit, __u64 value)
{
	return unit->counters ? value & (CCCR_ENABLE | CCCR_CASCADE | CCCR_EXTENDED)
			      : value >> unit->count_bits;
}

/* Whether one of the numbers has this address. */
static bool among(const struct unit_number *numbers, size_t nr, __u32 msr)
{
	for (size_t i = 0; i < nr; i++)
		if (numbers[i].value == msr)
			return true;
	return false;
}

bool unit_has(const struct known_unit *unit, __u32 msr)
{
	for (size_t c = 0; c < unit->nr_counters; c++)
		if (unit->counters[c].msr == msr || unit->counters[c].cccr_msr == msr)
			return true;
	for (size_t k = 0; k < unit->nr_kinds; k++) {
		const struct unit_kind *kind = &unit->kinds[k];

		for (size_t e = 0; e < kind->nr_escrs; e++)
			if (kind->escrs[e].msr == msr)
				return true;
		if (among(kind->counters, kind->nr_counters, msr))
			return true;
	}
	return among(unit->replay, unit->nr_replay, msr);
}

/* --- registers -------------------------------------------------------------------------------- */

__u64 unit_command(const struct known_unit *unit, int command, __u32 counters)
{
	return 1ULL << command | (__u64)counters << unit->select;
}

static void add_command(struct registers *registers, const struct event *event, int command, const char *name,
			const char *meaning)
{
	const struct known_unit *unit = event->msr;
	int counter = event->unit_counter;
	struct register_value *reg = &registers->list[registers->nr++];
	__u64 value = unit_command(unit, command, 1U << counter);

	*reg = (struct register_value){
		.name = unit->control, .msr = unit->control_msr, .value = value, .mask = value};
	unit_add_field(reg, name, meaning, command, command);
	unit_add_field(reg, "select", "the counter that the command is for", unit->select + counter,
		       unit->select + counter);
}

static void add_counter(struct registers *registers, const struct event *event)
{
	const struct unit_number *counter = unit_counter_of(event);
	struct register_value *reg = &registers->list[registers->nr++];

	*reg = (struct register_value){
		.name = counter->name,
		.msr = counter->value,
		.value = event->attr.config,
		.mask = ~0ULL,
		.rdpmc = event->msr->rdpmc ? event->msr->rdpmc + event->unit_counter : 0,
	};
	unit_add_field(reg, "count", "counting begins here", 0, event->msr->count_bits - 1);
	for (size_t i = 0; i < event->kind->nr_fields; i++) {
		const struct unit_field *field = &event->kind->fields[i];
		__u64 value = event->attr.config >> field->low & unit_field_most(field);

		unit_add_field(reg, field->title, unit_meaning(field, value), field->low, field->high);
	}
	for (int bit = event->msr->count_bits; bit < 64; bit++)
		if (event->kind->always >> bit & 1)
			unit_add_field(reg, "always", "has to be 1", bit, bit);
}

void unit_registers(const struct event *event, struct registers *registers)
{
	*registers = (struct registers){.fixed_counter = -1};
	if (event->msr->counters) {
		escr_registers(event, registers);
		return;
	}
	add_command(registers, event, event->msr->freeze, "freeze", "counting stops");
	add_counter(registers, event);
	add_command(registers, event, event->msr->reset, "reset", "the count and its overflow are cleared");
	add_command(registers, event, event->msr->unfreeze, "unfreeze", "counting goes on");
}
