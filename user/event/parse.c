// SPDX-License-Identifier: GPL-2.0-only
/*
 * The grammar is perf's (perf-list(1), "EVENT MODIFIERS", "RAW HARDWARE EVENT DESCRIPTOR"):
 *
 *     list   = item { "," item }
 *     item   = event | "{" event { "," event } "}" [ ":" modifiers ]
 *     event  = name { ":" piece } | name "/" terms "/" [ [ ":" ] modifiers ]
 *     terms  = term { "," term },  term = name [ "=" value ]
 *
 * with the names of compose.h and the pieces of spelling.h added. Space may stand around every "," "{" and
 * "}".
 */
#include "tables/compose.h"
#include "event/event.h"
#include "event/spelling.h"
#include "event/unit.h"
#include "tables/names.h"
#include "host/kernel.h"
#include "memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	const char *text; /* the whole list */
	const char *at;
	const char *item; /* start of the event, or of its term, that is being parsed */
	size_t place;	  /* offset of the fault in a name that is refused */
	struct host *host;
	struct events *events;
	struct refusal *refusal;
	int groups; /* number of groups so far */
};

/* --- modifiers -------------------------------------------------------------------------------- */

/* `said` is the text of the modifiers. */
static int modify(struct parser *parser, struct event *event, const struct spelling *spelling,
		  const char *said)
{
#define ON(letter)    (spelling_mode(spelling, letter) > 0)
#define GIVEN(letter) (spelling_mode(spelling, letter) != 0)
	int precise = ON('p') ? spelling_mode(spelling, 'p') : 0;
	bool sides = GIVEN('u') || GIVEN('k') || GIVEN('h');

	if (event->msr) {
		refuse(parser->refusal, STATUS_USAGE, "event '%s'", event->name);
		because(parser->refusal,
			"its counter takes no modifiers: it counts whoever is the cause, and "
			"raises no interrupt");
		return instead(parser->refusal, "leave out %s", said);
	}
	if (sides && !ON('u') && !ON('k') && !ON('h')) {
		refuse(parser->refusal, STATUS_USAGE, "event '%s'", event->name);
		because(parser->refusal,
			"it would count on no side: libpfm4 too counts nothing by u=0 or k=0 "
			"alone");
		return instead(parser->refusal, "name the side that is to be counted: k for u=0, u for k=0");
	}
	if (sides) {
		event->privilege_given = true;
		EVENT_SET(event, exclude_user, !ON('u'), "modifiers %s", said);
		EVENT_SET(event, exclude_kernel, !ON('k'), "modifiers %s", said);
		EVENT_SET(event, exclude_hv, !ON('h'), "modifiers %s", said);
	}
	if (ON('I')) {
		EVENT_SET(event, exclude_idle, 1, "modifier I");
		event_note(
			event,
			"I is perf's modifier, which leaves out the idle task; libpfm4 means i (inv) by it");
	}
	if (ON('D'))
		EVENT_SET(event, pinned, 1, "modifier D");
	if (ON('G') || ON('H')) {
		EVENT_SET(event, exclude_guest, !ON('G'), "modifiers %s", said);
		EVENT_SET(event, exclude_host, !ON('H'), "modifiers %s", said);
	} else if (!ON('u') && !precise && !ON('P') && (sides || ON('I') || ON('D'))) {
		/* As in perf: only the modifiers u, p and P keep the default, exclude_guest; others clear
		 * it. */
		EVENT_SET(event, exclude_guest, 0, "modifiers %s, as perf has it", said);
	}
	if (ON('P')) {
		const struct pmu *pmu = host_core_pmu(parser->host);

		precise = pmu && pmu->max_precise > 0 ? pmu->max_precise : 0;
	}
	if (GIVEN('p') || ON('P'))
		EVENT_SET(event, precise_ip, precise, "modifiers %s", said);
	return 0;
}

/* --- terms ------------------------------------------------------------------------------------ */

/* Writes a value to the bits of a format, lowest first. Returns false if it has more bits than the format. */
static bool deposit(__u64 *word, __u64 bits, __u64 value)
{
	*word &= ~bits;
	for (int bit = 0; bit < 64; bit++) {
		if (!(bits >> bit & 1))
			continue;
		*word |= (value & 1) << bit;
		value >>= 1;
	}
	return value == 0;
}

static int bad_term(struct parser *parser, const struct event *event, const char *term)
{
	return refuse(parser->refusal, STATUS_USAGE, "event '%s', term '%s'", event->name, term);
}

/* Terms that have the same meaning for every PMU: perf-list(1), and perf-record(1) for period and freq. */
static int common_term(struct parser *parser, struct event *event, const char *name, const char *text,
		       __u64 value, bool *taken)
{
	*taken = true;
	if (!strcmp(name, "config"))
		EVENT_SET(event, config, value, "config=%s", text);
	else if (!strcmp(name, "config1"))
		EVENT_SET(event, config1, value, "config1=%s", text);
	else if (!strcmp(name, "config2"))
		EVENT_SET(event, config2, value, "config2=%s", text);
	else if (!strcmp(name, "period") || !strcmp(name, "freq")) {
		bool frequency = name[0] == 'f';

		if (!value) {
			bad_term(parser, event, name);
			return because(parser->refusal, "a %s of 0 takes no samples", name);
		}
		event->sampling_given = true;
		EVENT_SET(event, freq, frequency, "%s=%s", name, text);
		EVENT_SET(event, sample_period, value, "%s=%s", name, text);
	} else if (!strcmp(name, "name"))
		snprintf(event->name, sizeof(event->name), "%.159s", text);
	else
		*taken = false;
	return 0;
}

static int apply_terms(struct parser *parser, struct event *event, const struct pmu *pmu, const char *terms,
		       const char *place);

static int refuse_term(struct parser *parser, struct event *event, const struct pmu *pmu, const char *name)
{
	char known[400] = "";
	size_t used = 0;

	for (size_t i = 0; pmu && i < pmu->nr_formats && used < sizeof(known); i++)
		used += snprintf(known + used, sizeof(known) - used, "%s, ", pmu->formats[i].name);
	bad_term(parser, event, name);
	because(parser->refusal, pmu ? "the PMU '%s' has no such term" : "'%s' is no term of this event",
		pmu ? pmu->name : name);
	return instead(parser->refusal, "terms: %sconfig, config1, config2, period, freq, name", known);
}

static int apply_format(struct parser *parser, struct event *event, const struct pmu_format *format,
			const char *text, __u64 value)
{
	__u64 words[] = {event->attr.config, event->attr.config1, event->attr.config2};
	int width = __builtin_popcountll(format->bits);

	if (!deposit(&words[format->word], format->bits, value)) {
		bad_term(parser, event, format->name);
		because(parser->refusal, "%s has %d bit%s; %s does not fit", format->name, width,
			width == 1 ? "" : "s", text);
		return instead(parser->refusal, "the largest is 0x%llx",
			       width == 64 ? ~0ULL : (1ULL << width) - 1);
	}
	if (format->word == 0)
		EVENT_SET(event, config, words[0], "terms of the event, placed by sysfs format");
	else if (format->word == 1)
		EVENT_SET(event, config1, words[1], "%s=%s", format->name, text);
	else
		EVENT_SET(event, config2, words[2], "%s=%s", format->name, text);
	return 0;
}

/* An event from perf's own files. Nothing but its terms is known about it. */
static int set_listed(struct parser *parser, struct event *event, const struct pmu *pmu,
		      const struct pmu_event *listed)
{
	event->listed = listed;
	snprintf(event->description, sizeof(event->description), "%.199s", listed->description);
	return apply_terms(parser, event, pmu, listed->terms, NULL);
}

static int set_alias(struct parser *parser, struct event *event, const struct pmu *pmu,
		     const struct pmu_alias *alias)
{
	event->companion = !strcmp(alias->name, "mem-loads-aux");
	snprintf(event->unit, sizeof(event->unit), "%s", alias->unit);
	event->scale = alias->scale;
	return apply_terms(parser, event, pmu, alias->terms, NULL);
}

static int apply_term(struct parser *parser, struct event *event, const struct pmu *pmu, char *term,
		      bool alias)
{
	const struct pmu_event *listed;
	char *equals = strchr(term, '='), *end = NULL;
	const char *text = equals ? equals + 1 : "1";
	__u64 value;
	bool taken;

	if (equals)
		*equals = '\0';
	errno = 0;
	value = strtoull(text, &end, 0);
	if (strcmp(term, "name") && (*end || end == text || text[0] == '-' || errno)) {
		bad_term(parser, event, term);
		because(parser->refusal, "'%s' is not a number of up to 64 bits", text);
		return instead(parser->refusal, "write it in decimal, or in hexadecimal with 0x");
	}
	if (common_term(parser, event, term, text, value, &taken))
		return -1;
	if (taken)
		return 0;
	for (size_t i = 0; pmu && i < pmu->nr_formats; i++)
		if (!strcmp(pmu->formats[i].name, term))
			return apply_format(parser, event, &pmu->formats[i], text, value);
	for (size_t i = 0; pmu && !alias && !equals && i < pmu->nr_aliases; i++)
		if (!strcasecmp(pmu->aliases[i].name, term))
			return set_alias(parser, event, pmu, &pmu->aliases[i]);
	listed = pmu && !alias && !equals ? pmu_event_find(&parser->host->pmu_events, term, pmu->name) : NULL;
	return listed ? set_listed(parser, event, pmu, listed) : refuse_term(parser, event, pmu, term);
}

/* `place` is where the terms are in the list's text, NULL if they are an alias's. */
static int apply_terms(struct parser *parser, struct event *event, const struct pmu *pmu, const char *terms,
		       const char *place)
{
	char *copy = xstrdup(terms), *save = NULL;
	int err = 0;

	for (char *term = strtok_r(copy, ",", &save); term && !err; term = strtok_r(NULL, ",", &save)) {
		term += strspn(term, " ");
		term[strcspn(term, " ")] = '\0';
		if (place)
			parser->item = place + (term - copy);
		err = apply_term(parser, event, pmu, term, !place);
	}
	free(copy);
	return err;
}

/* The PMU of an event's type, if it was asked for by name or is the core's. NULL for types of the kernel
 * itself. */
static const struct pmu *pmu_of_type(struct parser *parser, __u32 type)
{
	const struct pmu *pmu = host_core_pmu(parser->host);

	if (pmu && pmu->type == type)
		return pmu;
	for (pmu = parser->host->pmus; pmu && pmu->type != type; pmu = pmu->next)
		;
	return pmu;
}

/* Refuses bits that the PMU does not have. Drivers silently mask off bits of config that they do not know,
 * and then count something other than was asked for. The PMU's formats show which bits it has; if it has no
 * formats, all are accepted. */
static int check_bits(struct parser *parser, struct event *event)
{
	static const char *const names[] = {"config", "config1", "config2"};
	const __u64 words[] = {event->attr.config, event->attr.config1, event->attr.config2};
	const struct pmu *pmu = pmu_of_type(parser, event->attr.type);
	__u64 known[3] = {0};

	if (!pmu || !pmu->nr_formats)
		return 0;
	for (size_t i = 0; i < pmu->nr_formats; i++)
		known[pmu->formats[i].word] |= pmu->formats[i].bits;
	for (int i = 0; i < 3; i++) {
		if (!(words[i] & ~known[i]))
			continue;
		refuse(parser->refusal, STATUS_USAGE, "event '%s'", event->name);
		because(parser->refusal,
			"bit %d of %s means nothing to the PMU '%s', and the kernel "
			"would ignore it",
			__builtin_ctzll(words[i] & ~known[i]), names[i], pmu->name);
		return instead(parser->refusal,
			       "leave it out; /sys/bus/event_source/devices/%s/format "
			       "says which bits there are",
			       pmu->name);
	}
	return 0;
}

/* --- names ------------------------------------------------------------------------------------ */

static void set_selector(struct event *event, __u32 type, __u64 config, const char *why)
{
	EVENT_SET(event, type, type, "%s", why);
	EVENT_SET(event, config, config, "%s", why);
}

static int set_composed(struct parser *parser, struct event *event, const struct composed *composed)
{
	const struct pmu *pmu = host_core_pmu(parser->host);
	char why[80];

	if (!pmu) {
		refuse(parser->refusal, STATUS_REFUSED, "event '%s'", event->name);
		return kernel_lacks_pmu(parser->host, "cpu", parser->refusal);
	}
	snprintf(why, sizeof(why), "the table of %s", parser->host->events->name);
	event->known = composed->known;
	event_note(event, "%s", composed->note);
	snprintf(event->description, sizeof(event->description), "%s", composed->description);
	set_selector(event, pmu->type, composed->config, why);
	if (composed->config1)
		EVENT_SET(event, config1, composed->config1, "%s", why);
	return 0;
}

/* The names that are most like this one: those of perf's own files, which are used if the CPU has no table;
 * otherwise perf's generic names and the table's. */
static int nearest_here(const struct host *host, const char *name, char *near, size_t size)
{
	struct nearest nearest;

	if (!host->pmu_events.nr)
		return nearest_names(host->events, name, 3, near, size);
	nearest_begin(&nearest, name, 3);
	for (size_t i = 0; i < host->pmu_events.nr; i++)
		nearest_offer(&nearest, host->pmu_events.list[i].name);
	return nearest_print(&nearest, near, size);
}

static int refuse_pmu(struct parser *parser, const char *name);

/* If several PMUs have an event of this name, the core's is taken. */
static const struct pmu_event *find_listed(struct host *host, const char *name)
{
	const struct pmu *core = host_core_pmu(host);
	const struct pmu_event *listed = core ? pmu_event_find(&host->pmu_events, name, core->name) : NULL;

	return listed ? listed : pmu_event_find(&host->pmu_events, name, NULL);
}

static int resolve_listed(struct parser *parser, struct event *event, const struct pmu_event *listed)
{
	const struct pmu *pmu =
		listed->pmu ? host_pmu(parser->host, listed->pmu) : host_core_pmu(parser->host);

	if (!pmu)
		return refuse_pmu(parser, listed->pmu ? listed->pmu : "cpu");
	EVENT_SET(event, type, pmu->type, "the PMU '%s'", pmu->name);
	EVENT_SET(event, config, 0, "no term says otherwise");
	return set_listed(parser, event, pmu, listed);
}

/* Whether the name has the form rNNNN: the value of config for the core's PMU. */
static bool is_raw(const char *name)
{
	size_t digits = strspn(name + 1, "0123456789abcdefABCDEF");

	return name[0] == 'r' && digits >= 1 && digits <= 16 && name[1 + digits] == '\0';
}

/* The name of this machine's CPU, for messages. */
static const char *this_cpu(const struct host *host, char *text, size_t size)
{
	if (host->events)
		snprintf(text, size, "%s", host->events->name);
	else if (host->units)
		snprintf(text, size, "%s, whose table has events of --msr alone", host->units->name);
	else
		snprintf(text, size, "%.16s family %u model %u", host->cpu.vendor, host->cpu.family,
			 host->cpu.model);
	return text;
}

/* Refuses a name that is an event of another CPU. */
static int refuse_foreign(struct parser *parser, const char *name)
{
	const struct host *host = parser->host;
	struct composed composed;
	struct refusal ignored;
	char owners[300] = "", here[80];
	size_t used = 0;

	for (size_t i = 0; i < nr_known_cpus && used < sizeof(owners); i++)
		if (compose_event(&known_cpus[i], name, &composed, &ignored) == 1)
			used += snprintf(owners + used, sizeof(owners) - used, "%s%s", used ? ", " : "",
					 known_cpus[i].name);
	if (!used)
		return 0;
	refuse(parser->refusal, STATUS_REFUSED, "event '%s'", name);
	because(parser->refusal, "it is an event of %s; this machine is %s", owners,
		this_cpu(host, here, sizeof(here)));
	return instead(parser->refusal, host->events ? "nhmtap list shows the events of this machine"
						     : "use one of the generic events: cycles, instructions, "
						       "cache-misses, branch-misses, cpu-clock");
}

/* Whether a contradiction is about the name, or about a umask of this event while the table has no umask of
 * it. */
static bool concerns(const struct cpu_events *cpu, const char *about, const char *name)
{
	size_t base = strcspn(name, ".:");

	if (!name_order(about, name))
		return true;
	if (strncasecmp(about, name, base) || about[base] != '.')
		return false;
	for (size_t i = 0; i < cpu->nr_events; i++)
		if (!strncasecmp(cpu->events[i].name, name, base) && cpu->events[i].name[base] == '.')
			return false;
	return true;
}

/* Refuses a name that this CPU's table lacks because sources disagree about it. */
static int refuse_left_out(struct parser *parser, const char *name)
{
	const struct cpu_events *cpu = parser->host->events;

	for (size_t i = 0; cpu && i < cpu->nr_contradictions; i++) {
		const struct known_contradiction *entry = &cpu->contradictions[i];

		for (size_t n = 0; n < entry->nr_names; n++) {
			if (!concerns(cpu, entry->names[n], name))
				continue;
			refuse(parser->refusal, STATUS_USAGE, "event '%s'", name);
			because(parser->refusal, "the table of %s lacks it, as sources disagree about %s",
				cpu->name, entry->subject);
			according(parser->refusal, "%s", entry->id);
			return instead(parser->refusal, "what is done here: %s", entry->we_do);
		}
	}
	return 0;
}

/* Refuses a name whose event is in the table, but not with this umask. */
static int refuse_umask(struct parser *parser, const char *name)
{
	const struct cpu_events *cpu = parser->host->events;
	size_t base = strcspn(name, ".:");
	struct nearest nearest;
	char near[400], first[NAME_SIZE];
	bool found;

	if (!name[base] || !name[base + 1])
		return 0;
	snprintf(first, sizeof(first), "%.*s", (int)base, name);
	found = generic_event_find(first) || is_raw(first);
	nearest_begin(&nearest, name, 3);
	for (size_t i = 0; cpu && i < cpu->nr_events; i++)
		if (!strncasecmp(cpu->events[i].name, name, base) && cpu->events[i].name[base] == '.') {
			nearest_offer(&nearest, cpu->events[i].name);
			found = true;
		}
	if (!found)
		return 0;
	parser->place = base + 1;
	refuse(parser->refusal, STATUS_USAGE, "event '%s'", name);
	because(parser->refusal, "'%s' is no umask of %.*s, and no modifier", name + base + 1, (int)base,
		name);
	if (nearest_print(&nearest, near, sizeof(near)))
		return instead(parser->refusal, "did you mean %s?", near);
	return instead(parser->refusal, "modifiers are " MODIFIERS_KNOWN);
}

static int refuse_name(struct parser *parser, const char *name)
{
	const struct host *host = parser->host;
	char near[400];

	if (refuse_left_out(parser, name) || refuse_foreign(parser, name) || refuse_umask(parser, name))
		return -1;
	refuse(parser->refusal, STATUS_USAGE, "event '%s'", name);
	because(parser->refusal, "there is no event of this name%s", host->events ? "" : " here");
	if (nearest_here(host, name, near, sizeof(near)))
		return instead(parser->refusal, "did you mean %s?", near);
	return instead(parser->refusal, "see perf-list(1) for the generic names, or write rNNNN or "
					"cpu/event=…,umask=…/");
}

static int resolve_name(struct parser *parser, struct event *event, const char *name)
{
	const struct generic_event *generic = generic_event_find(name);
	const struct pmu *pmu = host_core_pmu(parser->host);
	const struct pmu_event *listed;
	struct composed composed;
	int found;
	__u64 config;

	if (generic) {
		set_selector(event, generic->type, generic->config, generic->name);
		snprintf(event->unit, sizeof(event->unit), "%s", generic->unit);
		return 0;
	}
	found = compose_event(parser->host->events, name, &composed, parser->refusal);
	listed = found == 1 ? NULL : find_listed(parser->host, name);
	if (listed)
		return resolve_listed(parser, event, listed);
	if (found < 0)
		parser->place = composed.at;
	if (found)
		return found < 0 ? -1 : set_composed(parser, event, &composed);
	if (!cache_event_find(name, &config)) {
		set_selector(event, PERF_TYPE_HW_CACHE, config, "cache event");
		return 0;
	}
	for (size_t i = 0; pmu && i < pmu->nr_aliases; i++)
		if (!strcasecmp(pmu->aliases[i].name, name)) {
			EVENT_SET(event, type, pmu->type, "the PMU '%s' names it", pmu->name);
			return set_alias(parser, event, pmu, &pmu->aliases[i]);
		}
	if (is_raw(name)) {
		set_selector(event, PERF_TYPE_RAW, strtoull(name + 1, NULL, 16), "raw code");
		return 0;
	}
	return refuse_name(parser, name);
}

static int refuse_pmu(struct parser *parser, const char *name)
{
	refuse(parser->refusal, STATUS_REFUSED, "event '%s/…/'", name);
	return kernel_lacks_pmu(parser->host, name, parser->refusal);
}

/* --- the list --------------------------------------------------------------------------------- */

static int syntax(struct parser *parser, const char *why)
{
	parser->item = parser->at;
	refuse(parser->refusal, STATUS_USAGE, "the list of events");
	because(parser->refusal, "%s", why);
	return instead(parser->refusal, "events look like cycles:u, r01c0, "
					"cpu/event=0xc0,umask=0x1/pp, {cycles,instructions}");
}

static void skip_space(struct parser *parser)
{
	while (isspace((unsigned char)*parser->at))
		parser->at++;
}

static struct event *new_event(struct parser *parser, const char *spelling, size_t length)
{
	struct events *events = parser->events;
	struct event *event;

	events->list = xrealloc(events->list, (events->nr + 1) * sizeof(*event));
	event = &events->list[events->nr++];
	*event = (struct event){.group = -1, .scale = 1};
	snprintf(event->name, sizeof(event->name), "%.*s", (int)length, spelling);
	EVENT_SET(event, size, sizeof(event->attr), "the newest layout this program knows");
	EVENT_SET(event, exclude_guest, 1, "perf's default: guests are not counted");
	return event;
}

/* Whether the name before a '/' is an event's, to which terms are added: cycles/period=1000/. Otherwise it is
 * a PMU's. */
static bool is_event_name(const struct parser *parser, const char *name)
{
	struct composed composed;
	struct refusal ignored;
	__u64 config;

	return generic_event_find(name) || !cache_event_find(name, &config) || is_raw(name) ||
	       find_listed(parser->host, name) ||
	       compose_event(parser->host->events, name, &composed, &ignored);
}

static int parse_terms(struct parser *parser, struct event *event, const char *name)
{
	const char *close = strchr(parser->at + 1, '/'), *place;
	const struct pmu *pmu;
	char terms[512];

	if (!close)
		return syntax(parser, "the '/' that ends the terms is missing");
	if ((size_t)(close - parser->at) > sizeof(terms))
		return syntax(parser, "the terms are too long");
	snprintf(terms, sizeof(terms), "%.*s", (int)(close - parser->at - 1), parser->at + 1);
	pmu = host_pmu(parser->host, name);
	if (pmu) {
		EVENT_SET(event, type, pmu->type, "the PMU '%s'", name);
		EVENT_SET(event, config, 0, "no term says otherwise");
		event->sideless = pmu->sideless;
		event->cpus = cpus_count(&pmu->cpus) ? &pmu->cpus : NULL;
		if (pmu->sideless)
			EVENT_SET(event, exclude_guest, 0, "the PMU '%s' tells no guests apart", name);
	} else if (!is_event_name(parser, name)) {
		return refuse_pmu(parser, name);
	} else {
		if (resolve_name(parser, event, name))
			return -1;
		if (event->attr.type >= PERF_TYPE_RAW)
			pmu = pmu_of_type(parser, event->attr.type);
	}
	place = parser->at + 1;
	parser->at = close + 1;
	if (pmu && pmu->unit) {
		size_t at;
		int err = unit_event(event, pmu->unit, host_two_threads(parser->host), terms, &at,
				     parser->refusal);

		parser->item = place + at;
		return err;
	}
	return apply_terms(parser, event, pmu, terms, place);
}

/* The length of a name or of modifiers. */
static size_t length_of(const char *text)
{
	return strcspn(text, ",/{} \t\n\v\f\r");
}

static int read_spelling(struct parser *parser, struct spelling *spelling, const char *text, size_t length,
			 bool named)
{
	size_t at = 0;
	int err = spelling_read(spelling, text, length, named, &at, parser->refusal);

	if (err)
		parser->item = text + at;
	return err;
}

/* NAME:0xNN: the event code of NAME in the table with this umask. If NAME is an off-core response register,
 * the number is its value. */
static int resolve_umask(struct parser *parser, struct event *event, const struct spelling *spelling)
{
	struct composed composed;
	int found = compose_umask(parser->host->events, spelling->name, spelling->umask, &composed,
				  parser->refusal);

	if (!found)
		return refuse_name(parser, spelling->name);
	return found < 0 ? -1 : set_composed(parser, event, &composed);
}

/* Whether the event's name contains its load-latency threshold: LATENCY_ABOVE_THRESHOLD_64. */
static bool names_threshold(const struct event *event)
{
	return event->known && isdigit((unsigned char)event->known->name[strlen(event->known->name) - 1]);
}

/* Applies a libpfm4 modifier that is a field of config. It must not contradict the value that the event
 * itself gives the field. */
static int modify_field(struct parser *parser, struct event *event, const struct term *term)
{
	const struct pmu *pmu = event->attr.type ? pmu_of_type(parser, event->attr.type) : NULL;
	const struct pmu_format *format = NULL;
	__u64 words[] = {event->attr.config, event->attr.config1, event->attr.config2}, own;
	char text[32];

	for (size_t i = 0; pmu && i < pmu->nr_formats; i++)
		if (!strcmp(pmu->formats[i].name, term->name))
			format = &pmu->formats[i];
	if (!pmu || !format) {
		refuse(parser->refusal, STATUS_USAGE, "event '%s', %s", event->name, term->name);
		because(parser->refusal,
			pmu ? "the PMU has no such field"
			    : "the kernel chooses what it counts, and takes no fields of it");
		return instead(parser->refusal,
			       pmu ? "leave it out" : "write the CPU's own event, which nhmtap list shows");
	}
	own = words[format->word];
	deposit(&words[format->word], format->bits, term->value);
	if (own & format->bits && own != words[format->word] &&
	    (strcmp(term->name, "ldlat") || names_threshold(event))) {
		refuse(parser->refusal, STATUS_USAGE, "event '%s', %s", event->name, term->name);
		because(parser->refusal, "the event has set %s itself", term->name);
		return instead(parser->refusal, "leave it out, or write cpu/event=…,umask=…,%s=…/",
			       term->name);
	}
	snprintf(text, sizeof(text), "%llu", term->value);
	return apply_format(parser, event, format, text, term->value);
}

static int apply_spelling(struct parser *parser, struct event *event, const struct spelling *spelling,
			  const char *text, size_t length)
{
	char said[80];
	bool taken;

	for (size_t i = 0; i < spelling->nr_terms; i++) {
		const struct term *term = &spelling->terms[i];
		char value[32];

		parser->item = text + term->at;
		snprintf(value, sizeof(value), "%llu", term->value);
		if (common_term(parser, event, term->name, value, term->value, &taken) ||
		    (!taken && modify_field(parser, event, term)))
			return -1;
	}
	parser->item = text + spelling->modifiers_at;
	snprintf(said, sizeof(said), "%.*s", (int)(length - spelling->modifiers_at),
		 text + spelling->modifiers_at);
	if (spelling->modified && modify(parser, event, spelling, said))
		return -1;
	parser->item = text;
	return 0;
}

/* PMU/terms/modifiers, or EVENT/terms/modifiers. */
static int parse_event_of_terms(struct parser *parser, struct event *event, const char *start, size_t length)
{
	const char *close = strchr(parser->at + 1, '/'), *modifiers;
	struct spelling spelling;
	char name[NAME_SIZE];

	snprintf(name, sizeof(name), "%.*s", (int)length, start);
	if (close) /* the default, which name= can replace */
		snprintf(event->name, sizeof(event->name), "%.*s", (int)(close + 1 - start), start);
	if (parse_terms(parser, event, name)) {
		parser->item += parser->place;
		return -1;
	}
	parser->item = start;
	if (check_bits(parser, event))
		return -1;
	modifiers = parser->at + (*parser->at == ':');
	length = length_of(modifiers);
	if (!length)
		return modifiers > parser->at ? syntax(parser, "there is nothing behind the ':'") : 0;
	parser->at = modifiers + length;
	if (read_spelling(parser, &spelling, modifiers, length, false))
		return -1;
	if (spelling.name[0] || spelling.has_umask) {
		parser->at = modifiers;
		return syntax(parser, "these are no modifiers (" MODIFIERS_KNOWN ")");
	}
	if (!strncmp(event->name, start, strlen(event->name)))
		snprintf(event->name, sizeof(event->name), "%.*s", (int)(parser->at - start), start);
	if (apply_spelling(parser, event, &spelling, modifiers, length))
		return -1;
	parser->item = start;
	return check_bits(parser, event);
}

/* A prefix may be libpfm4's name of a CPU: nhm::INST_RETIRED. perf:: and ix86arch:: are valid on every CPU.
 * Returns the length of the prefix including the colons, 0 if there is none, -1 if it is that of another
 * CPU. */
static int prefix_length(struct parser *parser, const char *text, size_t length)
{
	const struct cpu_events *here = parser->host->events;
	const char *colons = memmem(text, length, "::", 2);
	char name[40], cpu[80];

	if (!colons)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(colons - text), text);
	if (!strcasecmp(name, "perf") || !strcasecmp(name, "ix86arch") ||
	    (here && here->libpfm4 && !strcasecmp(name, here->libpfm4)))
		return colons + 2 - text;
	refuse(parser->refusal, STATUS_REFUSED, "event '%.*s'", (int)length, text);
	for (size_t i = 0; i < nr_known_cpus; i++)
		if (known_cpus[i].libpfm4 && !strcasecmp(name, known_cpus[i].libpfm4)) {
			because(parser->refusal, "it is an event of %s; this machine is %s",
				known_cpus[i].name, this_cpu(parser->host, cpu, sizeof(cpu)));
			return instead(parser->refusal, "nhmtap list shows the events of this machine");
		}
	because(parser->refusal, "'%s' is none of the CPUs that libpfm4 and the tables have", name);
	return instead(parser->refusal, "write the event without it");
}

static int parse_event(struct parser *parser, int group)
{
	const char *start = parser->at;
	size_t length = length_of(start);
	struct spelling spelling;
	struct event *event;
	int prefix;

	parser->item = start;
	if (!length)
		return syntax(parser, "an event's name is missing here");
	if (length >= sizeof(event->name) || (start[length] == '/' && length >= NAME_SIZE))
		return syntax(parser, "the name is too long");
	event = new_event(parser, start, length);
	event->group = group;
	event->at = start - parser->text;
	parser->at += length;
	parser->place = 0;
	if (*parser->at == '/')
		return parse_event_of_terms(parser, event, start, length);

	prefix = prefix_length(parser, start, length);
	if (prefix < 0)
		return -1;
	start += prefix;
	length -= prefix;
	if (read_spelling(parser, &spelling, start, length, true))
		return -1;
	if (spelling.has_umask ? resolve_umask(parser, event, &spelling)
			       : resolve_name(parser, event, spelling.name)) {
		parser->item = start + spelling.place[parser->place];
		return -1;
	}
	parser->item = start;
	if (check_bits(parser, event) || apply_spelling(parser, event, &spelling, start, length))
		return -1;
	return check_bits(parser, event);
}

static int parse_group(struct parser *parser)
{
	size_t first = parser->events->nr, length;
	int group = parser->groups++;
	struct spelling spelling;
	const char *modifiers;

	do {
		parser->at++;
		skip_space(parser);
		if (parse_event(parser, group))
			return -1;
		skip_space(parser);
	} while (*parser->at == ',');
	if (*parser->at != '}')
		return syntax(parser, "a '}' that ends the group is missing here");
	parser->at++;
	if (*parser->at != ':')
		return 0;
	modifiers = ++parser->at;
	length = length_of(modifiers);
	if (!length)
		return syntax(parser, "there is nothing behind the ':'");
	if (read_spelling(parser, &spelling, modifiers, length, false))
		return -1;
	if (spelling.name[0] || spelling.has_umask)
		return syntax(parser, "these are no modifiers (" MODIFIERS_KNOWN ")");
	for (size_t i = first; i < parser->events->nr; i++) {
		struct event *event = &parser->events->list[i];
		size_t used = strlen(event->name);

		if (apply_spelling(parser, event, &spelling, modifiers, length))
			return -1;
		snprintf(event->name + used, sizeof(event->name) - used, ":%.*s", (int)length, modifiers);
	}
	parser->at += length;
	return 0;
}

static int parse_list(struct parser *parser)
{
	for (;; parser->at++) {
		skip_space(parser);
		if (*parser->at == '{' ? parse_group(parser) : parse_event(parser, -1))
			return -1;
		skip_space(parser);
		if (!*parser->at)
			return 0;
		if (*parser->at != ',')
			return syntax(parser, "a ',' between two events is missing here");
	}
}

int events_parse(const char *text, struct host *host, struct events *events, struct refusal *refusal)
{
	struct parser parser = {
		.text = text, .at = text, .item = text, .host = host, .events = events, .refusal = refusal};
	size_t before = events->nr;

	for (size_t i = 0; i < before; i++)
		if (events->list[i].group >= parser.groups)
			parser.groups = events->list[i].group + 1;
	if (!parse_list(&parser))
		return 0;
	events->nr = before;
	return at_place(refusal, text, parser.item - text);
}
