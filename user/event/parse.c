// SPDX-License-Identifier: GPL-2.0-only
/*
 * The grammar is perf's (perf-list(1), "EVENT MODIFIERS", "RAW HARDWARE EVENT DESCRIPTOR"):
 *
 *     list   = item { "," item }
 *     item   = event | [ name ] "{" event { "," event } "}" [ ":" modifiers ]
 *     event  = name { ":" piece } | name "/" terms "/" [ [ ":" ] modifiers ]
 *     name   = word | type ":" config
 *     terms  = term { "," term },  term = name [ "=" value ] | rNNNN
 *
 * with the names of compose.h and the pieces of spelling.h added. Space may stand around every "," "{" and
 * "}". tests/events/facts/perf-parse-events.tsv has the texts of perf's own tests of its grammar.
 */
#include "base/alternatives.h"
#include "base/list.h"
#include "base/memory.h"
#include "event/escr_spelling.h"
#include "event/event.h"
#include "event/spelling.h"
#include "event/unit.h"
#include "host/kernel.h"
#include "option/models.h"
#include "tables/compose.h"
#include "tables/names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/nearest.h"

struct event_parser {
	const char *text; /* the whole list */
	const char *at;
	const char *item; /* start of the event, or of its term, that is being parsed */
	size_t place;	  /* offset of the fault in a name that is refused */
	struct host *host;
	struct events *events;
	struct refusal *refusal;
	int groups;	/* number of groups so far */
	bool tabled;	/* the last name was found in the CPU's table, whose names libpfm4 has too */
	__u64 given[3]; /* bits that an event's terms config, config1 and config2 have set */
	__u64 named[3]; /* bits of these that its terms of the PMU's formats have set */
	const struct pmu_format
		*second; /* another term that has another value for them; NULL: there is none */
};

/* --- modifiers -------------------------------------------------------------------------------- */

#define ON(letter)    (spelling_mode(spelling, letter) > 0)
#define GIVEN(letter) (spelling_mode(spelling, letter) != 0)

static int refuse_sideless(struct event_parser *parser, const struct event *event)
{
	refuse(parser->refusal, STATUS_USAGE, "event '%s'", event->name);
	because(parser->refusal, "it would count on no side: libpfm4 too counts nothing by u=0 or k=0 alone");
	return instead(parser->refusal, "name the side that is to be counted: k for u=0, u for k=0");
}

/* The first side that is named excludes the others; each further one is added to those named before, also by
 * the modifiers of the event's group. */
static int modify_sides(struct event_parser *parser, struct event *event, const struct spelling *spelling,
			const char *said, bool of_group)
{
	const struct perf_event_attr *attr = &event->attr;
	bool named = of_group && (attr->exclude_user || attr->exclude_kernel || attr->exclude_hv);

	if (!GIVEN('u') && !GIVEN('k') && !GIVEN('h'))
		return 0;
#define EXCLUDED(letter, member) (!ON(letter) && (GIVEN(letter) || !named || attr->member))
	event->privilege_given = true;
	EVENT_SET(event, exclude_user, EXCLUDED('u', exclude_user), "modifiers %s", said);
	EVENT_SET(event, exclude_kernel, EXCLUDED('k', exclude_kernel), "modifiers %s", said);
	EVENT_SET(event, exclude_hv, EXCLUDED('h', exclude_hv), "modifiers %s", said);
#undef EXCLUDED
	return attr->exclude_user && attr->exclude_kernel && attr->exclude_hv ? refuse_sideless(parser, event)
									      : 0;
}

/* Modifiers of perf's that, as others but u and p, clear the default, exclude_guest, of the event that they
 * are written at. Those of a group don't clear it. */
static bool clears_guest_default(const struct spelling *spelling, bool of_group)
{
	bool any = GIVEN('k') || GIVEN('h') || GIVEN('u');

	for (const char *letter = "IDeSWbX"; *letter; letter++)
		any = any || ON(*letter);
	return any && !of_group && !ON('u') && !ON('p') && !ON('P');
}

static void modify_guests(struct event *event, const struct spelling *spelling, const char *said,
			  bool of_group)
{
	bool named = of_group && event->guests_given;

	if (ON('G') || ON('H')) {
		EVENT_SET(event, exclude_guest, !ON('G') && (!named || event->attr.exclude_guest),
			  "modifiers %s", said);
		EVENT_SET(event, exclude_host, !ON('H') && (!named || event->attr.exclude_host),
			  "modifiers %s", said);
		event->guests_given = true;
	} else if (clears_guest_default(spelling, of_group)) {
		EVENT_SET(event, exclude_guest, 0, "modifiers %s, as perf has it", said);
	} else if (of_group && !named && (ON('u') || ON('p'))) {
		EVENT_SET(event, exclude_guest, 1, "modifiers %s of its group, as perf has it", said);
	}
}

/* perf adds the p of a group to those of its members. P stays the highest level, as in perf from 6.5 on;
 * earlier ones forget it if the group has modifiers. */
static int modify_precise(struct event_parser *parser, struct event *event, const struct spelling *spelling,
			  const char *said, bool of_group)
{
	const struct pmu *pmu = host_core_pmu(parser->host);
	int precise = (of_group ? event->attr.precise_ip : 0) + (ON('p') ? spelling_mode(spelling, 'p') : 0);

	event->most_precise = event->most_precise || ON('P');
	if (!GIVEN('p') && !ON('P'))
		return 0;
	if (event->most_precise)
		precise = pmu && pmu->max_precise > 0 ? pmu->max_precise : 0;
	if (precise > 3) {
		refuse(parser->refusal, STATUS_USAGE, "event '%s', modifiers '%s' of its group", event->name,
		       said);
		because(parser->refusal,
			"the group's p are added to the event's own, and precise_ip has levels 0 to 3");
		return instead(parser->refusal, "leave out p in one of the two");
	}
	EVENT_SET(event, precise_ip, precise, "modifiers %s", said);
	return 0;
}

/* Modifiers that say how the event's group is counted. They have no bit in the event's registers. `leads` is
 * whether the modifiers are those of the event itself, or of its group, which it leads. */
static void modify_scheduling(struct event *event, const struct spelling *spelling, const char *said,
			      bool leads)
{
	if (ON('D') && leads)
		EVENT_SET(event, pinned, 1, "modifiers %s", said);
	if (ON('e') && leads)
		EVENT_SET(event, exclusive, 1, "modifiers %s", said);
	event->weak = event->weak || ON('W');
	event->leader_samples = event->leader_samples || ON('S');
	if (ON('S'))
		event_note(event, "S concerns samples; the counts are the same without it");
	if (ON('b'))
		event_note(event, "b has no effect here: perf's shared counters (bperf) are not used, and "
				  "the counts are the same");
	if (ON('X'))
		event_note(event, "X has no effect here: no event is moved out of its group");
}

/* Applies perf's modifiers as perf does (get_event_modifier(), tools/perf/util/parse-events.c). `said` is
 * their text. Those of a group are added to what its members have; `leads` is false for the others than its
 * first. */
static int modify(struct event_parser *parser, struct event *event, const struct spelling *spelling,
		  const char *said, bool of_group, bool leads)
{
	if (event->msr) {
		refuse(parser->refusal, STATUS_USAGE, "event '%s'", event->name);
		because(parser->refusal, "its counter takes no modifiers: it counts whoever is the cause, "
					 "and raises no interrupt");
		return instead(parser->refusal, "leave out %s", said);
	}
	if (ON('R')) {
		refuse(parser->refusal, STATUS_USAGE, "event '%s', modifier R", event->name);
		because(parser->refusal,
			"it is perf's for the latency of retirement, which is read from samples that "
			"perf record takes, and counts nothing");
		return instead(parser->refusal, "leave it out");
	}
	if (modify_sides(parser, event, spelling, said, of_group))
		return -1;
	if (ON('I')) {
		EVENT_SET(event, exclude_idle, 1, "modifier I");
		event_note(
			event,
			"I is perf's modifier, which leaves out the idle task; libpfm4 means i (inv) by it");
	}
	modify_guests(event, spelling, said, of_group);
	modify_scheduling(event, spelling, said, leads);
	return modify_precise(parser, event, spelling, said, of_group);
}

/* --- terms ------------------------------------------------------------------------------------ */

/* A number as perf reads it: 0x… in hexadecimal, else in decimal, though it begins with 0. */
static __u64 read_number(const char *text, char **end)
{
	return strtoull(text, end, text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10);
}

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

static int bad_term(struct event_parser *parser, const struct event *event, const char *term)
{
	return refuse(parser->refusal, STATUS_USAGE, "event '%s', term '%s'", event->name, term);
}

static bool is_whole_word(const char *name, int *word)
{
	static const char *const names[] = {"config", "config1", "config2"};

	for (*word = 0; *word < 3; ++*word)
		if (!strcmp(name, names[*word]))
			return true;
	return false;
}

/* Terms that have the same meaning for every PMU: perf-list(1), and perf-record(1) for period and freq. */
static int common_term(struct event_parser *parser, struct event *event, const char *name, const char *text,
		       __u64 value, bool *taken)
{
	int word;

	*taken = true;
	if (is_whole_word(name, &word))
		parser->given[word] |= value;
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
			because(parser->refusal, "a %s of 0 takes no samples", name);
			return instead(parser->refusal, "give it 1 or more, or leave it out to count");
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

static int apply_terms(struct event_parser *parser, struct event *event, const struct pmu *pmu,
		       const char *terms, const char *place);

static int refuse_term(struct event_parser *parser, struct event *event, const struct pmu *pmu,
		       const char *name)
{
	static const char *const always[] = {"config", "config1", "config2", "period", "freq", "name", NULL};
	struct alternatives alternatives;

	alternatives_begin(&alternatives, name, strcspn(name, "="));
	for (size_t i = 0; pmu && i < pmu->nr_formats; i++)
		alternatives_offer(&alternatives, pmu->formats[i].name);
	alternatives_offer_all(&alternatives, always);
	bad_term(parser, event, name);
	because(parser->refusal, pmu ? "the PMU '%s' has no such term" : "'%s' is no term of this event",
		pmu ? pmu->name : name);
	return alternatives_end(&alternatives, parser->refusal, "terms: %s", alternatives.all);
}

/* perf ors values of the same bits, which gives what nobody has asked for. */
static int refuse_second(struct event_parser *parser, const struct event *event,
			 const struct pmu_format *format)
{
	bad_term(parser, event, format->name);
	because(parser->refusal, "config has other values for its bits, and perf would mix them");
	return instead(parser->refusal, "give these bits one value");
}

static int apply_format(struct event_parser *parser, struct event *event, const struct pmu_format *format,
			const char *text, __u64 value, bool of_alias)
{
	__u64 words[] = {event->attr.config, event->attr.config1, event->attr.config2};
	__u64 before = words[format->word] & format->bits & parser->given[format->word];
	__u64 named = words[format->word] & format->bits & parser->named[format->word];
	int width = __builtin_popcountll(format->bits);

	if (!deposit(&words[format->word], format->bits, value)) {
		bad_term(parser, event, format->name);
		because(parser->refusal, "%s has %d bit%s; %s does not fit", format->name, width,
			width == 1 ? "" : "s", text);
		return instead(parser->refusal, "the largest is 0x%llx",
			       width == 64 ? ~0ULL : (1ULL << width) - 1);
	}
	if (before & ~words[format->word])
		parser->second = format;
	if (!of_alias) {
		parser->named[format->word] |= words[format->word] & format->bits;
		if (named & ~words[format->word])
			event_note(event, "of the values of %s the last counts; perf mixes them",
				   format->name);
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
static int set_listed(struct event_parser *parser, struct event *event, const struct pmu *pmu,
		      const struct pmu_event *listed)
{
	event->listed = listed;
	snprintf(event->description, sizeof(event->description), "%.199s", listed->description);
	return apply_terms(parser, event, pmu, listed->terms, NULL);
}

static int set_alias(struct event_parser *parser, struct event *event, const struct pmu *pmu,
		     const struct pmu_alias *alias)
{
	event->companion = !strcmp(alias->name, "mem-loads-aux");
	snprintf(event->unit, sizeof(event->unit), "%s", alias->unit);
	event->scale = alias->scale;
	return apply_terms(parser, event, pmu, alias->terms, NULL);
}

/* Terms of perf's that say how perf record keeps an event's samples. */
static const char *const terms_of_record[] = {
	"branch_type", "time",	     "call-graph",	"stack-size", "max-stack",
	"nr",	       "inherit",    "no-inherit",	"overwrite",  "no-overwrite",
	"percore",     "aux-output", "aux-sample-size",
};

static int refuse_term_of_record(struct event_parser *parser, const struct event *event, const char *term)
{
	for (size_t i = 0; i < ARRAY_SIZE(terms_of_record); i++) {
		if (strcmp(terms_of_record[i], term))
			continue;
		bad_term(parser, event, term);
		because(parser->refusal, "it says how perf record keeps the samples of this event; here "
					 "options say so, for all events");
		return instead(parser->refusal, "leave it out; nhmtap help profile shows the options");
	}
	return 0;
}

static const struct pmu_alias *find_alias(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; pmu && i < pmu->nr_aliases; i++)
		if (!strcasecmp(pmu->aliases[i].name, name))
			return &pmu->aliases[i];
	return NULL;
}

static const struct pmu_format *find_format(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; pmu && i < pmu->nr_formats; i++)
		if (!strcmp(pmu->formats[i].name, name))
			return &pmu->formats[i];
	return NULL;
}

/* The PMU's event that a term names: NAME, or event=NAME. */
static const struct pmu_alias *alias_of_term(const struct pmu *pmu, const char *term, const char *value)
{
	if (value)
		return strcmp(term, "event") ? NULL : find_alias(pmu, value);
	return find_format(pmu, term) ? NULL : find_alias(pmu, term);
}

/* A name of the CPU's table as a term, as perf takes the names of its own files: cpu/NAME,cmask=1/. Further
 * terms add to it. Returns false if the table has no such name. */
static bool tabled_term(struct event_parser *parser, struct event *event, const char *name)
{
	struct refusal ignored = {0};
	struct composed composed;

	if (compose_event(parser->host->events, name, &composed, &ignored) != 1)
		return false;
	event->known = composed.known;
	event_note(event, "%s", composed.note);
	snprintf(event->description, sizeof(event->description), "%s", composed.description);
	EVENT_SET(event, config, (event->attr.config & ~CONFIG_SELECT) | composed.config,
		  "the table of %s, and terms of the event", parser->host->events->name);
	if (composed.config1)
		EVENT_SET(event, config1, composed.config1, "the table of %s", parser->host->events->name);
	return true;
}

/* One of perf's own names as a term of the core's PMU, cpu/cycles/ or cpu/L1-dcache-loads/: perf takes it
 * from 6.6 on, and means the event of that name. Returns false if it is none. */
static bool generic_term(struct event *event, const struct pmu *pmu, const char *name)
{
	const struct generic_event *generic = generic_event_find(name);
	__u32 type = generic ? generic->type : PERF_TYPE_HW_CACHE;
	__u64 config = generic ? generic->config : 0;

	if (strcmp(pmu->name, "cpu") || event->attr.config || type == PERF_TYPE_SOFTWARE)
		return false;
	if (!generic && cache_event_find(name, &config))
		return false;
	EVENT_SET(event, type, type, "%s", name);
	EVENT_SET(event, config, config, "%s", name);
	return true;
}

static bool is_raw(const char *name);

static bool takes_number(const struct pmu *pmu, const char *term)
{
	int word;

	return is_whole_word(term, &word) || !strcmp(term, "period") || !strcmp(term, "freq") ||
	       find_format(pmu, term);
}

static int apply_term(struct event_parser *parser, struct event *event, const struct pmu *pmu, char *term,
		      bool of_alias)
{
	const struct pmu_alias *named;
	const struct pmu_format *format;
	const struct pmu_event *listed;
	char *equals = strchr(term, '='), *end = NULL;
	const char *text = equals ? equals + 1 : "1";
	__u64 value;
	bool taken;

	if (equals)
		*equals = '\0';
	if (pmu && event->attr.type != pmu->type)
		pmu = NULL; /* one of perf's own names was before it, whose bits are the kernel's matter */
	/* event=NAME is perf's longer form of NAME, and rNNNN of config=0xNNNN. */
	named = of_alias ? NULL : alias_of_term(pmu, term, equals ? text : NULL);
	if (named)
		return set_alias(parser, event, pmu, named);
	if (!equals && !of_alias && is_raw(term)) {
		EVENT_SET(event, config, strtoull(term + 1, NULL, 16), "%s", term);
		parser->given[0] |= event->attr.config;
		return 0;
	}
	if (refuse_term_of_record(parser, event, term))
		return -1;
	errno = 0;
	value = read_number(text, &end);
	if (takes_number(pmu, term) && (*end || !isdigit((unsigned char)text[0]) || errno)) {
		bad_term(parser, event, term);
		because(parser->refusal, "'%s' is not a number of up to 64 bits", text);
		return instead(parser->refusal, "write it in decimal, or in hexadecimal with 0x");
	}
	if (common_term(parser, event, term, text, value, &taken))
		return -1;
	if (taken)
		return 0;
	format = find_format(pmu, term);
	if (format)
		return apply_format(parser, event, format, text, value, of_alias);
	listed = pmu && !of_alias && !equals ? pmu_event_find(&parser->host->pmu_events, term, pmu->name)
					     : NULL;
	if (listed)
		return set_listed(parser, event, pmu, listed);
	if (!equals && !of_alias && pmu && pmu == host_core_pmu(parser->host) &&
	    (tabled_term(parser, event, term) || generic_term(event, pmu, term)))
		return 0;
	return refuse_term(parser, event, pmu, term);
}

/* Ends the term that *text begins with, takes the quotes away that its value may have (name='a,b'), and moves
 * *text behind it. Returns NULL if there is no further term. */
static char *next_term(char **text)
{
	char *term = *text + strspn(*text, " ,"), *end = term + strcspn(term, "',"), *quoted = end + 1;

	if (!*term)
		return NULL;
	if (*end == '\'' && strchr(quoted, '\'')) {
		size_t length = strcspn(quoted, "'");

		memmove(end, quoted, length);
		end[length] = '\0';
		*text = quoted + length + 1;
		return term;
	}
	end += strcspn(end, ",");
	*text = end + (*end != '\0');
	*end = '\0';
	while (end > term && end[-1] == ' ')
		*--end = '\0';
	return term;
}

/* Whether a term is a value of a whole word, which perf sets before the terms for some of its bits. */
static bool sets_word(const char *term)
{
	char name[16];
	int word;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(term, "="), term);
	return is_whole_word(name, &word) || (!strchr(term, '=') && is_raw(term));
}

static int apply_some_terms(struct event_parser *parser, struct event *event, const struct pmu *pmu,
			    const char *terms, const char *place, bool words)
{
	char *copy = xstrdup(terms), *rest = copy;
	int err = 0;

	for (char *term = next_term(&rest); term && !err; term = next_term(&rest)) {
		if (sets_word(term) != words)
			continue;
		if (place)
			parser->item = place + (term - copy);
		err = apply_term(parser, event, pmu, term, !place);
	}
	free(copy);
	return err;
}

/* `place` is where the terms are in the list's text, NULL if they are an alias's. */
static int apply_terms(struct event_parser *parser, struct event *event, const struct pmu *pmu,
		       const char *terms, const char *place)
{
	if (place) {
		memset(parser->given, 0, sizeof(parser->given));
		memset(parser->named, 0, sizeof(parser->named));
		parser->second = NULL;
	}
	if (apply_some_terms(parser, event, pmu, terms, place, true))
		return -1;
	return apply_some_terms(parser, event, pmu, terms, place, false);
}

/* The PMU of an event's type, if it was asked for by name or is the core's. NULL for types of the kernel
 * itself. */
static const struct pmu *pmu_of_type(struct event_parser *parser, __u32 type)
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
static int check_bits(struct event_parser *parser, struct event *event)
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
			"bit %d of %s means nothing to the PMU '%s', and the kernel would ignore it",
			__builtin_ctzll(words[i] & ~known[i]), names[i], pmu->name);
		return instead(
			parser->refusal,
			"leave it out; /sys/bus/event_source/devices/%s/format says which bits there are",
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

static int set_composed(struct event_parser *parser, struct event *event, const struct composed *composed)
{
	const struct pmu *pmu = host_core_pmu(parser->host);
	char why[80];

	if (!pmu) {
		refuse(parser->refusal, STATUS_REFUSED, "event '%s'", event->name);
		return kernel_lacks_pmu(parser->host, "cpu", parser->refusal);
	}
	snprintf(why, sizeof(why), "the table of %s", parser->host->events->name);
	parser->tabled = true;
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

static int refuse_pmu(struct event_parser *parser, const char *name);

/* If several PMUs have an event of this name, the core's is taken. */
static const struct pmu_event *find_listed(struct host *host, const char *name)
{
	const struct pmu *core = host_core_pmu(host);
	const struct pmu_event *listed = core ? pmu_event_find(&host->pmu_events, name, core->name) : NULL;

	return listed ? listed : pmu_event_find(&host->pmu_events, name, NULL);
}

static int resolve_listed(struct event_parser *parser, struct event *event, const struct pmu_event *listed)
{
	const struct pmu *pmu =
		listed->pmu ? host_pmu(parser->host, listed->pmu) : host_core_pmu(parser->host);

	if (!pmu)
		return refuse_pmu(parser, listed->pmu ? listed->pmu : "cpu");
	EVENT_SET(event, type, pmu->type, "the PMU '%s'", pmu->name);
	EVENT_SET(event, config, 0, "no term says otherwise");
	return set_listed(parser, event, pmu, listed);
}

/* Whether the name has the form rNNNN: the value of config for the core's PMU. perf also writes r0xNNNN. */
static bool is_raw(const char *name)
{
	const char *digits = name + (strncmp(name, "r0x", 3) ? 1 : 3);
	size_t nr = name[0] == 'r' ? strspn(digits, "0123456789abcdefABCDEF") : 0;

	return nr >= 1 && nr <= 16 && !digits[nr];
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

/* The emulated machine's model of a CPU; NULL if it has none. */
static const char *model_of(const struct cpu_events *cpu)
{
	const char *found = NULL;

	for (size_t i = 0; i < cpu->nr_models && !found; i++)
		found = machine_model_of(cpu->models[i].family, cpu->models[i].model);
	return found;
}

/* Refuses a name that is an event of another CPU. */
static int refuse_foreign(struct event_parser *parser, const char *name)
{
	const struct host *host = parser->host;
	struct composed composed;
	struct refusal ignored;
	const char *emulated = NULL;
	char owners[300] = "", here[80];

	for (size_t i = 0; i < nr_known_cpus; i++) {
		if (compose_event(&known_cpus[i], name, &composed, &ignored) != 1)
			continue;
		list_append(owners, sizeof(owners), known_cpus[i].name);
		emulated = emulated ? emulated : model_of(&known_cpus[i]);
	}
	if (!owners[0])
		return 0;
	refuse(parser->refusal, STATUS_REFUSED, "event '%s'", name);
	because(parser->refusal, "it is an event of %s; this machine is %s", owners,
		this_cpu(host, here, sizeof(here)));
	return instead(parser->refusal, "%s%s%s",
		       host->events ? "nhmtap list shows the events of this machine"
				    : "use one of the generic events: cycles, instructions, cache-misses, "
				      "branch-misses, cpu-clock",
		       emulated && host_may_be_emulated(host)
			       ? "; or an emulated machine that has it: --machine="
			       : "",
		       emulated && host_may_be_emulated(host) ? emulated : "");
}

/* Whether a contradiction is about the name, or about a umask of this event while the table has no umask of
 * it. */
static bool is_of_name(const struct cpu_events *cpu, const char *about, const char *name)
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
static int refuse_left_out(struct event_parser *parser, const char *name)
{
	const struct cpu_events *cpu = parser->host->events;

	for (size_t i = 0; cpu && i < cpu->nr_contradictions; i++) {
		const struct known_contradiction *entry = &cpu->contradictions[i];

		for (size_t n = 0; n < entry->nr_names; n++) {
			if (!is_of_name(cpu, entry->names[n], name))
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
static int refuse_umask(struct event_parser *parser, const char *name)
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

/* --- what perf counts that is no event of a PMU or of the kernel's software --------------------- */

static bool is_tool(const char *name)
{
	return !strcmp(name, "duration_time") || !strcmp(name, "elapsed") || !strcmp(name, "user_time") ||
	       !strcmp(name, "system_time");
}

static bool is_breakpoint(const char *name)
{
	return !strncmp(name, "mem:", 4) && isdigit((unsigned char)name[4]);
}

static bool is_bpf_file(const char *name)
{
	const char *end = strrchr(name, '.');

	return end && (!strcmp(end, ".o") || !strcmp(end, ".c") || !strcmp(end, ".bpf"));
}

/* Events and umasks of a CPU are written like this too, so it's asked last. */
static bool is_tracepoint(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon && colon > name && colon[1] && !strpbrk(colon + 1, ":.");
}

static const struct foreign_kind {
	bool (*is)(const char *name);
	const char *what, *instead;
} foreign_kinds[] = {
	{is_tool, "it is no event, but read from a clock",
	 "each count has its interval as duration_ns, nhmtap stat ends with the elapsed, user and system "
	 "time, and its --expect takes 'elapsed<2s'"},
	{is_breakpoint, "it is a breakpoint, and only events that count are taken", "use perf stat, or gdb"},
	{is_bpf_file, "it is the file of a BPF program, and only events are taken", "use bpftool prog load"},
	{is_tracepoint, "there is no event of this name, and tracepoints (SYSTEM:NAME) are not taken",
	 "use perf stat or bpftrace for a tracepoint; nhmtap list shows the events"},
};

static int refuse_foreign_kind(struct event_parser *parser, const char *name)
{
	size_t length = strcspn(name, ",} ");

	for (size_t i = 0; i < ARRAY_SIZE(foreign_kinds); i++) {
		if (!foreign_kinds[i].is(name))
			continue;
		refuse(parser->refusal, STATUS_USAGE, "event '%.*s'", (int)length, name);
		because(parser->refusal, "%s", foreign_kinds[i].what);
		return instead(parser->refusal, "%s", foreign_kinds[i].instead);
	}
	return 0;
}

/* TYPE:CONFIG, in decimal or as 0x…: the members of perf_event_attr. */
static bool is_numeric(const char *name, __u64 *type, __u64 *config)
{
	char *end;

	if (!isdigit((unsigned char)name[0]))
		return false;
	errno = 0;
	*type = read_number(name, &end);
	if (*end != ':' || !isdigit((unsigned char)end[1]))
		return false;
	*config = read_number(end + 1, &end);
	return !*end && !errno && *type <= ~0U;
}

static int resolve_numeric(struct event_parser *parser, struct event *event, __u32 type, __u64 config)
{
	const struct pmu *pmu;

	if (type == PERF_TYPE_TRACEPOINT || type == PERF_TYPE_BREAKPOINT) {
		refuse(parser->refusal, STATUS_USAGE, "event '%s'", event->name);
		because(parser->refusal, "type %u is that of %s, which are not taken", type,
			type == PERF_TYPE_TRACEPOINT ? "tracepoints" : "breakpoints");
		return instead(parser->refusal, "use perf stat");
	}
	set_selector(event, type, config, "type and config as given");
	host_read_pmus(parser->host);
	pmu = pmu_of_type(parser, type);
	if (pmu) {
		event->sideless = pmu->sideless;
		event->cpus = cpus_count(&pmu->cpus) ? &pmu->cpus : NULL;
		if (pmu->sideless)
			EVENT_SET(event, exclude_guest, 0, "the PMU '%s' tells no guests apart", pmu->name);
	}
	return 0;
}

static int refuse_name(struct event_parser *parser, const char *name)
{
	const struct host *host = parser->host;
	char near[400];

	if (refuse_left_out(parser, name) || refuse_foreign(parser, name) || refuse_umask(parser, name))
		return -1;
	if (!is_tracepoint(name) && refuse_foreign_kind(parser, name))
		return -1;
	refuse(parser->refusal, STATUS_USAGE, "event '%s'", name);
	because(parser->refusal, "there is no event of this name%s", host->events ? "" : " here");
	if (nearest_here(host, name, near, sizeof(near)))
		return instead(parser->refusal, "did you mean %s?", near);
	if (refuse_foreign_kind(parser, name))
		return -1;
	return instead(parser->refusal,
		       "see perf-list(1) for the generic names, or write rNNNN or cpu/event=…,umask=…/");
}

static int resolve_name(struct event_parser *parser, struct event *event, const char *name)
{
	const struct generic_event *generic = generic_event_find(name);
	const struct pmu *pmu = host_core_pmu(parser->host);
	const struct pmu_event *listed;
	const struct pmu_alias *alias;
	struct composed composed;
	int found;
	__u64 config, type;

	if (is_numeric(name, &type, &config))
		return resolve_numeric(parser, event, type, config);
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
	alias = find_alias(pmu, name);
	if (alias) {
		EVENT_SET(event, type, pmu->type, "the PMU '%s' names it", pmu->name);
		return set_alias(parser, event, pmu, alias);
	}
	if (is_raw(name)) {
		set_selector(event, PERF_TYPE_RAW, strtoull(name + 1, NULL, 16), "raw code");
		return 0;
	}
	return refuse_name(parser, name);
}

static int refuse_pmu(struct event_parser *parser, const char *name)
{
	refuse(parser->refusal, STATUS_REFUSED, "event '%s/…/'", name);
	return kernel_lacks_pmu(parser->host, name, parser->refusal);
}

/* PMUs of the kernel's whose requests hold addresses of names or instructions, which no term can give. */
static const struct pointing_pmu {
	const char *name, *what, *instead;
} pointing_pmus[] = {
	{"breakpoint", "a breakpoint's address", "use perf stat -e mem:ADDRESS, or gdb"},
	{"kprobe", "the name of a function of the kernel in memory", "use perf probe, or bpftrace"},
	{"uprobe", "the name of a file in memory", "use perf probe, or bpftrace"},
};

static int refuse_pointing(struct event_parser *parser, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(pointing_pmus); i++) {
		if (strcmp(pointing_pmus[i].name, name))
			continue;
		refuse(parser->refusal, STATUS_USAGE, "event '%s/…/'", name);
		because(parser->refusal, "the kernel wants %s for it, which no term can give",
			pointing_pmus[i].what);
		return instead(parser->refusal, "%s", pointing_pmus[i].instead);
	}
	return 0;
}

/* --- the list --------------------------------------------------------------------------------- */

static int syntax(struct event_parser *parser, const char *why)
{
	parser->item = parser->at;
	refuse(parser->refusal, STATUS_USAGE, "the list of events");
	because(parser->refusal, "%s", why);
	return instead(
		parser->refusal,
		"events look like cycles:u, r01c0, cpu/event=0xc0,umask=0x1/pp, {cycles,instructions}");
}

static void skip_space(struct event_parser *parser)
{
	while (isspace((unsigned char)*parser->at))
		parser->at++;
}

static struct event *new_event(struct event_parser *parser, const char *spelling, size_t length)
{
	struct events *events = parser->events;
	struct event *event;

	event = xappend(events->list, events->nr);
	*event = (struct event){.group = -1, .scale = 1};
	snprintf(event->name, sizeof(event->name), "%.*s", (int)length, spelling);
	EVENT_SET(event, size, sizeof(event->attr), "the newest layout this program knows");
	EVENT_SET(event, exclude_guest, 1, "perf's default: guests are not counted");
	return event;
}

/* Whether the name before a '/' is an event's, to which terms are added: cycles/period=1000/. Otherwise it is
 * a PMU's. */
static bool is_event_name(const struct event_parser *parser, const char *name)
{
	struct composed composed;
	struct refusal ignored;
	__u64 config, type;

	return is_numeric(name, &type, &config) || generic_event_find(name) ||
	       !cache_event_find(name, &config) || is_raw(name) || find_listed(parser->host, name) ||
	       compose_event(parser->host->events, name, &composed, &ignored);
}

/* What events of a PMU have in common. */
static void begin_of_pmu(struct event *event, const struct pmu *pmu)
{
	EVENT_SET(event, type, pmu->type, "the PMU '%s'", pmu->name);
	EVENT_SET(event, config, 0, "no term says otherwise");
	event->sideless = pmu->sideless;
	event->cpus = cpus_count(&pmu->cpus) ? &pmu->cpus : NULL;
	if (pmu->sideless)
		EVENT_SET(event, exclude_guest, 0, "the PMU '%s' tells no guests apart", pmu->name);
}

static int parse_terms(struct event_parser *parser, struct event *event, const char *name)
{
	const char *close = strchr(parser->at + 1, '/'), *place;
	const struct pmu *pmu;
	char terms[512];

	if (!close)
		return syntax(parser, "the '/' that ends the terms is missing");
	if ((size_t)(close - parser->at) > sizeof(terms))
		return syntax(parser, "the terms are too long");
	snprintf(terms, sizeof(terms), "%.*s", (int)(close - parser->at - 1), parser->at + 1);
	if (refuse_pointing(parser, name))
		return -1;
	pmu = host_pmu(parser->host, name);
	if (pmu) {
		begin_of_pmu(event, pmu);
	} else if (!is_event_name(parser, name)) {
		return strchr(name, ':') ? refuse_name(parser, name) : refuse_pmu(parser, name);
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

#define SPACE " \t\n\v\f\r"

/* The length of a name or of modifiers. */
static size_t length_of(const char *text)
{
	return strcspn(text, ",/{}" SPACE);
}

static bool has_umask(const void *context, const char *event, const char *umask)
{
	char name[NAME_SIZE + 8];

	snprintf(name, sizeof(name), "%s.%s", event, umask);
	return known_event_find(context, name);
}

static int read_spelling(struct event_parser *parser, struct spelling *spelling, const char *text,
			 size_t length, bool named)
{
	size_t at = 0;
	int err = spelling_read(spelling, text, length, named ? has_umask : NULL, parser->host->events, &at,
				parser->refusal);

	if (err)
		parser->item = text + at;
	return err;
}

/* NAME:0xNN: the event code of NAME in the table with this umask. If NAME is an off-core response register,
 * the number is its value. */
static int resolve_umask(struct event_parser *parser, struct event *event, const struct spelling *spelling)
{
	char numeric[NAME_SIZE + 24];
	struct composed composed;
	__u64 type, config;
	int found;

	snprintf(numeric, sizeof(numeric), "%s:0x%llx", spelling->name, spelling->umask);
	if (is_numeric(numeric, &type, &config))
		return resolve_numeric(parser, event, type, config);
	found = compose_umask(parser->host->events, spelling->name, spelling->umask, &composed,
			      parser->refusal);
	if (!found &&
	    compose_event(parser->host->events, spelling->name, &composed, &(struct refusal){0}) == 1) {
		refuse(parser->refusal, STATUS_USAGE, "event '%s'", numeric);
		because(parser->refusal, "0x%llx is all of its umask, which has names beside it",
			spelling->umask);
		return instead(parser->refusal, "write either the number or the names");
	}
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
static int modify_field(struct event_parser *parser, struct event *event, const struct term *term)
{
	const struct pmu *pmu = event->attr.type ? pmu_of_type(parser, event->attr.type) : NULL;
	const struct pmu_format *format = find_format(pmu, term->name);
	__u64 words[] = {event->attr.config, event->attr.config1, event->attr.config2}, own;
	char text[32];

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
	return apply_format(parser, event, format, text, term->value, true);
}

static int apply_spelling(struct event_parser *parser, struct event *event, const struct spelling *spelling,
			  const char *text, size_t length, bool of_group, bool leads)
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
	if (spelling->modified && modify(parser, event, spelling, said, of_group, leads))
		return -1;
	parser->item = text;
	return 0;
}

/* PMU/terms/modifiers, or EVENT/terms/modifiers. */
static int parse_event_of_terms(struct event_parser *parser, struct event *event, const char *start,
				size_t length)
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
	if (parser->second)
		return refuse_second(parser, event, parser->second);
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
	if (apply_spelling(parser, event, &spelling, modifiers, length, false, true))
		return -1;
	parser->item = start;
	return check_bits(parser, event);
}

/* netburst:: stands for netburst_p::, too, which has one event more. */
static bool is_libpfm4s(const struct cpu_events *cpu, const char *name)
{
	size_t length = strlen(name);

	return cpu->libpfm4 && !strncasecmp(name, cpu->libpfm4, length) &&
	       (!cpu->libpfm4[length] || !strcmp(cpu->libpfm4 + length, "_p"));
}

/* A prefix may be libpfm4's name of a CPU: nhm::INST_RETIRED. perf:: and ix86arch:: are valid on every CPU.
 * Returns the length of the prefix including the colons, 0 if there is none, -1 if it is that of another
 * CPU. */
static int prefix_length(struct event_parser *parser, const char *text, size_t length)
{
	const struct cpu_events *core = parser->host->events, *here = core ? core : parser->host->units;
	const char *colons = memmem(text, length, "::", 2);
	char name[40], cpu[80];

	if (!colons)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(colons - text), text);
	if (!strcasecmp(name, "perf") || !strcasecmp(name, "ix86arch") || (here && is_libpfm4s(here, name)))
		return colons + 2 - text;
	refuse(parser->refusal, STATUS_REFUSED, "event '%.*s'", (int)length, text);
	for (size_t i = 0; i < nr_known_cpus; i++)
		if (is_libpfm4s(&known_cpus[i], name)) {
			because(parser->refusal, "it is an event of %s; this machine is %s",
				known_cpus[i].name, this_cpu(parser->host, cpu, sizeof(cpu)));
			return instead(parser->refusal, "nhmtap list shows the events of this machine");
		}
	if (strcasestr(name, "_unc")) {
		because(parser->refusal, "no table has libpfm4's names of what is outside of the cores");
		return instead(parser->refusal,
			       "write the PMU with the codes, as in uncore/event=0x2f,umask=0x07/, or "
			       "uncore_imc_0/event=0x04,umask=0x03/ on Sandy Bridge-EP");
	}
	because(parser->refusal, "'%s' is none of the CPUs that libpfm4 and the tables have", name);
	return instead(parser->refusal, "write the event without it");
}

/* The unit with ESCRs that this CPU has; NULL if it has none. */
static const struct known_unit *escr_unit(const struct host *host)
{
	for (size_t i = 0; host->units && i < host->units->nr_units; i++)
		if (host->units->units[i].counters)
			return &host->units->units[i];
	return NULL;
}

/* Makes an event of such a unit from libpfm4's spelling. Returns 1, 0 if it is another event, or -1. */
static int take_escr_spelling(struct event_parser *parser, struct event *event, const char *text,
			      size_t length)
{
	const struct known_unit *unit = escr_unit(parser->host);
	bool two_threads = host_two_threads(parser->host);
	char terms[512];
	size_t at;

	if (!unit || !escr_spelled(unit, two_threads, text, length, terms, sizeof(terms)))
		return 0;
	begin_of_pmu(event, host_pmu(parser->host, unit->name));
	if (unit_event(event, unit, two_threads, terms, &at, parser->refusal))
		return -1;
	if (!two_threads)
		event_note(event, "libpfm4 encodes the levels of a second thread, T1_OS and T1_USR, as well; "
				  "this machine's cores have one");
	if (!strcmp(event->kind->name, "b2b_cycles"))
		event_note(event, "libpfm4 encodes BIT5 and BIT6 as BIT4");
	return 1;
}

static int parse_event(struct event_parser *parser, int group)
{
	const char *start = parser->at;
	size_t length = length_of(start);
	struct spelling spelling;
	struct event *event;
	int prefix, unit;

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
	parser->tabled = false;
	if (is_breakpoint(start))
		return refuse_foreign_kind(parser, start);
	if (*parser->at == '/')
		return parse_event_of_terms(parser, event, start, length);

	prefix = prefix_length(parser, start, length);
	if (prefix < 0)
		return -1;
	start += prefix;
	length -= prefix;
	unit = take_escr_spelling(parser, event, start, length);
	if (unit)
		return unit < 0 ? -1 : 0;
	if (read_spelling(parser, &spelling, start, length, true))
		return -1;
	if (spelling.has_umask ? resolve_umask(parser, event, &spelling)
			       : resolve_name(parser, event, spelling.name)) {
		parser->item = start + spelling.place[parser->place];
		return -1;
	}
	parser->item = start;
	if (!parser->tabled)
		spelling_take_perfs_e(&spelling);
	if (check_bits(parser, event) || apply_spelling(parser, event, &spelling, start, length, false, true))
		return -1;
	return check_bits(parser, event);
}

/* Modifiers of a group: all members get them, added to their own. */
static int modify_group(struct event_parser *parser, size_t first)
{
	const char *modifiers = ++parser->at;
	size_t length = length_of(modifiers);
	struct spelling spelling;

	if (!length)
		return syntax(parser, "there is nothing behind the ':'");
	if (read_spelling(parser, &spelling, modifiers, length, false))
		return -1;
	if (spelling.name[0] || spelling.has_umask)
		return syntax(parser, "these are no modifiers (" MODIFIERS_KNOWN ")");
	for (size_t i = first; i < parser->events->nr; i++) {
		struct event *event = &parser->events->list[i];
		size_t used = strlen(event->name);

		if (apply_spelling(parser, event, &spelling, modifiers, length, true, i == first))
			return -1;
		snprintf(event->name + used, sizeof(event->name) - used, ":%.*s", (int)length, modifiers);
	}
	parser->at += length;
	return 0;
}

/* The kernel takes these of a group's first event alone: perf_event_open(), kernel/events/core.c. */
static int check_members(struct event_parser *parser, size_t first)
{
	for (size_t i = first + 1; i < parser->events->nr; i++) {
		const struct event *event = &parser->events->list[i];

		if (!event->attr.pinned && !event->attr.exclusive)
			continue;
		parser->item = parser->text + event->at;
		refuse(parser->refusal, STATUS_USAGE, "event '%s'", event->name);
		because(parser->refusal, "it is not the first of its group, and the whole group is scheduled "
					 "as its first event is");
		return instead(parser->refusal, "write %c behind the group, {…}:%c",
			       event->attr.pinned ? 'D' : 'e', event->attr.pinned ? 'D' : 'e');
	}
	return 0;
}

static int parse_group(struct event_parser *parser)
{
	size_t first = parser->events->nr, name = parser->at - parser->text;
	size_t length = length_of(parser->at);
	int group = parser->groups++;

	parser->at += length;
	skip_space(parser);
	do {
		parser->at++;
		skip_space(parser);
		if (parse_event(parser, group))
			return -1;
		skip_space(parser);
	} while (*parser->at == ',');
	if (*parser->at != '}')
		return syntax(parser, *parser->at == ':' ? "there is a space before it"
							 : "a '}' that ends the group is missing here");
	parser->at++;
	if (*parser->at == ':' && modify_group(parser, first))
		return -1;
	if (length)
		event_note(&parser->events->list[first], "the group's name, %.*s, is not in records",
			   (int)length, parser->text + name);
	return check_members(parser, first);
}

/* Whether a group begins here, with or without a name. */
static bool begins_group(const char *at)
{
	at += length_of(at);
	return at[strspn(at, SPACE)] == '{';
}

static int parse_list(struct event_parser *parser)
{
	for (;; parser->at++) {
		skip_space(parser);
		if (begins_group(parser->at) ? parse_group(parser) : parse_event(parser, -1))
			return -1;
		skip_space(parser);
		if (!*parser->at)
			return 0;
		if (*parser->at != ',')
			return syntax(parser, *parser->at == '/' && parser->at[-1] == '}'
						      ? "a group takes modifiers, and no terms"
					      : strchr(":{/", *parser->at) && strchr(SPACE, parser->at[-1])
						      ? "there is a space before it"
						      : "a ',' between two events is missing here");
	}
}

int events_parse(const char *text, struct host *host, struct events *events, struct refusal *refusal)
{
	struct event_parser parser = {
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
