/* SPDX-License-Identifier: GPL-2.0-only */
/* Activities that sample: each event with an aggregation of bpf/ behind it, reported as records of one type,
 * with the account of the samples. */
#ifndef NHMTAP_SAMPLING_H
#define NHMTAP_SAMPLING_H

#include <stdbool.h>
#include <jansson.h>

#include "collection/aggregation.h"
#include "collection/counters.h"
#include "option/options.h"
#include "plan/plan.h"
#include "refusal.h"
#include "activity/activity.h"

/* Puts what a reading found into a record. */
typedef void (*put_fn)(const struct activity *activity, json_t *record, const struct layout *layout,
		       struct reading *reading);

/* What an event's interval gave, before its entries are sorted and cut. */
struct sampled {
	const struct event *event;
	size_t index; /* of the event in the plan */
	const struct layout *layout;
	struct reading *reading;
	const struct count *count; /* since the record before */
};

struct sampling {
	const char *command;	  /* the subcommand, and the type of its records: "profile" */
	const char *aggregation;  /* its file in bpf/: "profile" for profile.bpf.c */
	const char *default_keys; /* of --by */
	const char *stream_keys;  /* of --by with --stream; NULL: there is no stream */
	bool reads_stacks;	  /* the program may get none; the account then counts these */
	put_fn put;		  /* NULL: entries, by their keys */
	const char *ahead;	  /* a list of its records that stands in front of them, as records of
				   * a type of this name; NULL: none */
	bool places;		  /* always maps addresses to files */
	unsigned int names;	  /* and how they are called, unless --by says so: of enum code_detail */
	const struct code_key *code_keys; /* keys of --by that are names; NULL: there are none */
	bool knows_throttling;		  /* its program counts the times that the event was stopped */
	/* Adds what the records of this command alone have, and writes others behind those of all `nr`
	 * events; may be NULL. */
	void (*complete)(const struct activity *activity, const struct sampled *sampled, json_t *record);
	int (*follow)(struct activity *activity, const struct sampled *sampled, size_t nr);
};

/* Whether users' stacks are walked by tables. */
bool sampling_unwinds(const struct activity *activity);

/* How many of `nr` entries a record is to have: records hold all, a screen what fits, unless --top says
 * otherwise; and no more than --memory leaves room for. */
size_t sampling_most_entries(const struct activity *activity, size_t nr);

/* The operations of all that sample: activity->details is a struct sampling. A command's own are these,
 * with its plan. */
#define SAMPLING_OPS(plan_function)                                                                          \
	{                                                                                                    \
		.plan = plan_function, .check = sampling_check, .describe = sampling_describe,               \
		.want = sampling_want, .attach = sampling_attach, .attach_at = sampling_attach_at,           \
		.sampled_part = sampling_part, .detach_at = sampling_detach_at, .drain = sampling_drain,     \
		.so_far = sampling_so_far, .report = sampling_report, .finish = sampling_finish,             \
		.release = sampling_release,                                                                 \
	}
int sampling_check(struct activity *activity, struct refusal *refusal);
void sampling_describe(struct activity *activity, json_t *start);
void sampling_want(const struct activity *activity, struct limits *limits);
const struct sampled_part *sampling_part(const struct activity *activity);
int sampling_attach(struct activity *activity, struct refusal *refusal);
int sampling_attach_at(struct activity *activity, size_t place, struct refusal *refusal);
void sampling_detach_at(struct activity *activity, size_t place);
int sampling_drain(struct activity *activity);
void sampling_so_far(struct activity *activity, struct so_far *sum);
int sampling_report(struct activity *activity, bool last);
int sampling_finish(struct activity *activity, json_t *end);
void sampling_release(struct activity *activity);

#endif
