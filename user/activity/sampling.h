/* SPDX-License-Identifier: GPL-2.0-only */
/* Sampling activities. Each event has an aggregation by a program of bpf/, which is reported in records of
 * one type, with an account of the samples. */
#pragma once

#include <stdbool.h>
#include <jansson.h>

#include "activity/activity.h"
#include "activity/silence.h"
#include "aggregation/aggregation.h"
#include "base/refusal.h"
#include "collection/counters.h"
#include "option/options.h"
#include "plan/plan.h"

/* Puts the result of a reading into a record. What was named before is in sampling_gathered(). */
typedef void (*put_fn)(const struct activity *activity, json_t *record, const struct layout *layout,
		       struct reading *reading);

/* What the programs can tell of a sample: see struct sampling. */
#define WHERE_OF_ALL  "ip,pid,tid,cpu,comm,cgroup,period"
#define WHERE_OF_DATA WHERE_OF_ALL ",addr,latency,source"

/* The result of an event's interval, before its entries are sorted and cut. */
struct sampled {
	const struct event *event;
	size_t index; /* of the event in the plan */
	const struct layout *layout;
	struct reading *reading;
	const struct count *count; /* since the record before */
};

/* Keeps entries of an event that are named before the end of an interval: their addresses may mean something
 * else later, and there may be more of them than fit. */
struct gathering {
	/* The caller owns the result, and calls release(). The codes and the layout outlive it. */
	void *(*begin)(const struct activity *activity, struct codes *codes, const struct layout *layout);
	/* The next entries have these stacks. NULL: entries have none. */
	void (*from)(void *gathered, const struct stacks *stacks);
	/* Takes in an entry. Returns false if there is no time for its names (see codes_try()). */
	bool (*take)(void *gathered, const struct entry *entry);
	size_t (*count)(const void *gathered);
	/* See folded_choose() and folded_keep(). Not called for entries with stacks. */
	void (*choose)(void *gathered, size_t most, bool *used);
	void (*keep)(void *gathered, const __u32 *numbers);
	void (*release)(void *gathered);
};

/* If `nr` gatherings (NULL: there is none) have many entries, codes or long names for what `most` keys may
 * take, keeps at most a quarter as many entries of each, those with the most weight, and sums up the others.
 * Codes that are in none of them any more are forgotten. */
void gathering_trim(const struct gathering *gathering, void *const *gathered, size_t nr, struct codes *codes,
		    size_t most);

struct sampling {
	const char *command;	    /* the command, and the type of its records: "profile" */
	const char *aggregation;    /* name of its file in bpf/: "profile" for profile.bpf.c */
	const char *keys_option;    /* "--fields", of a command whose samples all stream; NULL: "--by" */
	const char *default_keys;   /* of --by */
	const char *annotated_keys; /* of --annotate; NULL: it is not supported */
	const char *stream_keys;    /* of --by with --stream; NULL: --stream is not supported */
	const char *stream_shows;   /* what a stream's samples have beside the keys; NULL: the keys name that,
				       too */
	const char *where_fields;   /* what --where may compare: of where_compile(); NULL: nothing */
	bool reads_stacks; /* samples may lack the stack that the program needs; the account counts these */
	put_fn put;	   /* NULL: puts entries by their keys */
	const struct gathering *gathering; /* for `put`; NULL: entries are named at the end of an interval */
	const char *ahead;  /* a list of its records that is written before them, as a record of this type;
			       NULL: none */
	bool places;	    /* addresses are always mapped to files */
	unsigned int names; /* names of these addresses, unless --by has names: of enum code_detail */
	const struct code_key *code_keys; /* keys of --by that are names; NULL: there are none */
	bool knows_throttling;		  /* its program always counts how often the event was throttled */
	/* Returns why the samples of a record brought no entry, or NULL if they brought one. The text is
	 * constant, or written to `text`. NULL instead of the function: each sample is one of an entry. */
	const char *(*empty)(const struct activity *activity, const json_t *record, char text[SILENCE_SIZE]);
	/* complete() adds members that only this command's records have. follow() writes other records after
	 * those of all `nr` events. Both may be NULL. */
	void (*complete)(const struct activity *activity, const struct sampled *sampled, json_t *record);
	int (*follow)(struct activity *activity, const struct sampled *sampled, size_t nr);
};

/* Whether stacks of user code are walked by unwind tables. */
bool sampling_unwinds(const struct activity *activity);

/* Returns what was gathered of the event with this layout, or a new gathering. Each entry that is not among
 * those of the reading is in it, or was shed. The caller owns the result. */
void *sampling_gathered(const struct activity *activity, const struct layout *layout);

/* Put entries with stacks into a record: a put_fn, and what it needs. */
extern const struct gathering gathering_of_stacks;
void sampling_put_stacks(const struct activity *activity, json_t *record, const struct layout *layout,
			 struct reading *reading);

/* How many of `nr` entries a record gets: all of them, or for output that people read as many as fit a
 * screen, unless --top says otherwise; and no more than --memory allows. */
size_t sampling_most_entries(const struct activity *activity, size_t nr);

/* The most keys of an event that are kept in an interval. */
size_t sampling_most_keys(const struct activity *activity);

/* The bytes that the tables of one event of the activity may take: its part of what a run's take at most, or
 * of half of --memory if that is more. */
size_t sampling_tables_most(const struct activity *activity);

/* Adds the memory for keys and entries that the activity needs and wants. */
void sampling_want_entries(const struct activity *activity, struct limits *limits);

/* The operations of all sampling activities; activity->details is a struct sampling. A command's operations
 * are these with its own plan function. */
#define SAMPLING_OPS(plan_function)                                                                          \
	{                                                                                                    \
		.plan = plan_function, .check = sampling_check, .describe = sampling_describe,               \
		.want = sampling_want, .attach = sampling_attach, .attach_at = sampling_attach_at,           \
		.sampled_part = sampling_part, .detach_at = sampling_detach_at, .drain = sampling_drain,     \
		.wake_fd = sampling_wake_fd, .so_far = sampling_so_far, .report = sampling_report,           \
		.finish = sampling_finish, .release = sampling_release,                                      \
	}
int sampling_check(struct activity *activity, struct refusal *refusal);
void sampling_describe(struct activity *activity, json_t *start);
void sampling_want(const struct activity *activity, struct limits *limits);
const struct sampled_part *sampling_part(const struct activity *activity);
int sampling_attach(struct activity *activity, struct refusal *refusal);
int sampling_attach_at(struct activity *activity, size_t place, struct refusal *refusal);
void sampling_detach_at(struct activity *activity, size_t place);
int sampling_drain(struct activity *activity);
int sampling_wake_fd(const struct activity *activity);
void sampling_so_far(struct activity *activity, struct so_far *sum);
int sampling_report(struct activity *activity, bool last);
int sampling_finish(struct activity *activity, json_t *end);
void sampling_release(struct activity *activity);
