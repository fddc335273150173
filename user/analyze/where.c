// SPDX-License-Identifier: GPL-2.0-only
#include "analyze/where.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/again.h"
#include "analyze/spots.h"
#include "base/array.h"
#include "base/memory.h"
#include "output/member.h"
#include "record/record.h"

/* So many samples tell a part of 5 % from nothing. Where they would be denser than one in so many cycles,
 * they are fewer: the kernel's code that takes a sample is counted too. */
#define SAMPLES_WANTED 1000
#define SAMPLES_LEAST  100
#define CYCLES_BETWEEN 5000

/* --- what samples ----------------------------------------------------------------------------- */

/* How the records of a command are read. */
struct sampler {
	const char *command;
	const char *extra[4]; /* options beside those of the share */
	const char *record;   /* the type of the records */
	const char *weight;   /* what an entry stands for */
	const char *code, *to;
	double thinned; /* samples are taken of one in so many of what the share counts, or of more if < 1 */
};

static const struct sampler samplers[] = {
	{"profile", {"--by", "line"}, "profile", "period", "code", NULL, 1},
	/* Each sample brings 16 branches, few of which are mispredicted. */
	{"branch", {"--by", "line"}, "branch", "mispredicted_period", "from", "to", 10},
	/* The PMU tags only some of the loads. */
	{"mem", {NULL}, "shared_line", "period", "code", NULL, 0.1},
};

static const struct sampler *sampler_of(const char *locate)
{
	for (size_t i = 0; i < ARRAY_SIZE(samplers); i++)
		if (!strncmp(locate, samplers[i].command, strlen(samplers[i].command)))
			return &samplers[i];
	return NULL;
}

double where_samples(double whole)
{
	return fmax(SAMPLES_LEAST, fmin(SAMPLES_WANTED, whole / CYCLES_BETWEEN));
}

/* An event that is precise is asked for with the address of its own instruction, where the PMU can tell it.
 */
static char *word_of(const char *word, size_t length, struct host *host)
{
	const struct pmu *pmu = host_core_pmu(host);
	bool precise = length > 2 && !strncmp(word + length - 2, ":p", 2);

	return xasprintf("%.*s%s", (int)length, word, precise && pmu && pmu->max_precise >= 2 ? "p" : "");
}

/* Adds the words of the share's command, but for the stacks, which are for people. */
static void add_located(struct arguments *command, const char *locate, struct host *host)
{
	for (const char *word = locate; *word;) {
		size_t length = strcspn(word, " ");

		if (length != 2 || strncmp(word, "-g", 2)) {
			char *own = word_of(word, length, host);

			arguments_add(command, own);
			free(own);
		}
		word += length + (word[length] == ' ');
	}
}

/* --- entries ---------------------------------------------------------------------------------- */

static void take_code(json_t *place, const json_t *code)
{
	static const char *const members[] = {"symbol", "module", "file", "line"};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (json_object_get(code, members[i]))
			json_object_set(place, members[i], json_object_get(code, members[i]));
}

static json_t *place_value(const json_t *entry, const struct sampler *sampler)
{
	const json_t *to = sampler->to ? json_object_get(entry, sampler->to) : NULL;
	json_t *place = json_object();

	take_code(place, json_object_get(entry, sampler->code));
	if (to) {
		json_t *target = json_object();

		take_code(target, to);
		json_object_set_new(place, "to", target);
	}
	return place;
}

/* Adds the entries of a record, if it is of the command's type. */
static void add_record(struct spots *spots, const json_t *record, const struct sampler *sampler)
{
	json_t *entry;
	size_t i;

	if (strcmp(string(record, "type"), sampler->record))
		return;
	spots->all += json_number_value(json_object_get(json_object_get(record, "rest"), sampler->weight));
	json_array_foreach(json_object_get(record, "entries"), i, entry)
		spots_add(spots, place_value(entry, sampler),
			  json_number_value(json_object_get(entry, sampler->weight)));
}

/* --- a share ---------------------------------------------------------------------------------- */

static char *command_text(const struct arguments *command)
{
	char *text, *all = xstrdup(command->words[0]);

	for (size_t i = 1; i < command->nr; i++) {
		text = xasprintf("%s %s", all, command->words[i]);
		free(all);
		all = text;
	}
	return all;
}

static void put_places(json_t *share, json_t *sampled, const json_t *records, const struct sampler *sampler)
{
	json_int_t paused = again_sum(records, "throttled");
	struct spots spots;
	json_t *record, *list;
	size_t i;

	spots_begin(&spots);
	json_array_foreach(records, i, record)
		add_record(&spots, record, sampler);
	list = spots_end(&spots, WHERE_ENTRIES);
	json_object_set_new(sampled, "samples", json_integer(again_sum(records, "aggregated")));
	if (paused)
		json_object_set_new(sampled, "throttled", json_integer(paused));
	if (list)
		json_object_set_new(share, "where", list);
	else
		json_object_set_new(sampled, "why", json_string("no sample was of it"));
}

/* Says in an annotation that the kernel paused the sampling. */
static void put_pauses(json_t *annotation, json_int_t paused)
{
	json_t *why = json_object_get(annotation, "why");

	if (!paused)
		return;
	if (!why) {
		why = json_array();
		json_object_set_new(annotation, "why", why);
	}
	json_array_append_new(why, json_sprintf(PAUSED, (long long)paused));
}

/* Samples once more, by the places in the code, and appends the annotations of the function. Returns 0, or -1
 * with the reason. */
static int annotate_function(struct activity *activity, const struct known_share *known, const char *function,
			     double occurrences, double whole, json_t *annotations, char *why, size_t size)
{
	struct arguments command = {0};
	json_t *records, *record;
	size_t i;

	add_located(&command, known->locate, &activity->session->host);
	arguments_add_option(&command, "--annotate", function);
	records = again_sample(activity, &command, occurrences * sampler_of(known->locate)->thinned,
			       where_samples(whole), why, size);
	json_array_foreach(records, i, record) {
		if (strcmp(string(record, "type"), "annotation"))
			continue;
		json_object_set_new(record, "of_share", json_string(known->name));
		put_pauses(record, again_sum(records, "throttled"));
		json_array_append(annotations, record);
	}
	arguments_release(&command);
	if (!records)
		return -1;
	json_decref(records);
	return 0;
}

/* Annotates the function that has most of a share's samples, or says in the share why it does not. Without
 * samples, the share says why already. */
static void annotate_share(struct activity *activity, const struct known_share *known, double occurrences,
			   double whole, const json_t *share, json_t *annotations)
{
	const struct sampler *sampler = sampler_of(known->locate);
	const json_t *hottest = json_array_get(json_object_get(share, "where"), 0);
	const char *function = string(hottest, "symbol"), *module = string(hottest, "module");
	char why[300] = "";

	if (!hottest)
		return;
	if (strcmp(sampler->record, "profile"))
		snprintf(why, sizeof(why), "it is found by %s, whose samples are not of instructions",
			 sampler->command);
	else if (!*function)
		snprintf(why, sizeof(why), "the code that has most of its samples has no name%s%s",
			 *module ? ", in " : "", module);
	else if (!annotate_function(activity, known, function, occurrences, whole, annotations, why,
				    sizeof(why)))
		return;
	json_object_set_new(json_object_get(share, "sampled"), "unannotated", value_text(why, sizeof(why)));
}

static void sample(struct activity *activity, const struct known_share *known, double occurrences,
		   double whole, json_t *share)
{
	const struct sampler *sampler = sampler_of(known->locate);
	struct arguments command = {0};
	json_t *sampled = json_object(), *records;
	char *text, why[300];

	add_located(&command, known->locate, &activity->session->host);
	for (size_t i = 0; sampler->extra[i]; i++)
		arguments_add(&command, sampler->extra[i]);
	records = again_sample(activity, &command, occurrences * sampler->thinned, where_samples(whole), why,
			       sizeof(why));
	text = command_text(&command);
	json_object_set_new(sampled, "by", json_string(text));
	free(text);
	if (records)
		put_places(share, sampled, records, sampler);
	else
		json_object_set_new(sampled, "why", value_text(why, sizeof(why)));
	json_decref(records);
	json_object_set_new(share, "sampled", sampled);
	arguments_release(&command);
}

/* --- the shares ------------------------------------------------------------------------------- */

static bool is_sampled(const struct account *account, size_t i)
{
	const struct accounted_share *share = &account->list[i];

	return share->there && share->share >= WHERE_LEAST && share->known->locate &&
	       account_is_leaf(account, i) && sampler_of(share->known->locate);
}

/* The largest share that is sampled and smaller than `below`, or as large and later; account->nr: none. */
static size_t next_largest(const struct account *account, const bool *taken)
{
	size_t most = account->nr;

	for (size_t i = 0; i < account->nr; i++)
		if (!taken[i] && is_sampled(account, i) &&
		    (most == account->nr || account->list[i].share > account->list[most].share))
			most = i;
	return most;
}

json_t *share_in(const json_t *record, const char *name)
{
	return object_named(json_object_get(record, "shares"), name);
}

void where_add(struct activity *activity, const struct account *account,
	       const struct occurrences *occurrences, __u64 most, json_t *record, json_t *annotations)
{
	bool *taken = xcalloc(account->nr + 1, sizeof(*taken));
	size_t i;

	while (most-- && !activity->session->ended_by && (i = next_largest(account, taken)) < account->nr) {
		const struct known_share *known = account->list[i].known;
		json_t *share = share_in(record, known->name);

		taken[i] = true;
		sample(activity, known, occurrences->shares[i], occurrences->whole, share);
		if (annotations && !activity->session->ended_by)
			annotate_share(activity, known, occurrences->shares[i], occurrences->whole, share,
				       annotations);
	}
	free(taken);
}
