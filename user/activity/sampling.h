/* SPDX-License-Identifier: GPL-2.0-only */
/* Sampling activities. Each event has an aggregation by a program of bpf/, which is reported in records of
 * one type, with an account of the samples. */
#ifndef NHMTAP_SAMPLING_H
#define NHMTAP_SAMPLING_H

#include <stdbool.h>
#include <jansson.h>

#include "activity/activity.h"
#include "aggregation/aggregation.h"
#include "base/refusal.h"
#include "collection/counters.h"
#include "option/options.h"
#include "plan/plan.h"

/* Puts the result of a reading into a record. */
typedef void (*put_fn)(const struct activity *activity, json_t *record, const struct layout *layout,
		       struct reading *reading);

/* The result of an event's interval, before its entries are sorted and cut. */
struct sampled {
	const struct event *event;
	size_t index; /* of the event in the plan */
	const struct layout *layout;
	struct reading *reading;
	const struct count *count; /* since the record before */
};

struct sampling {
	const char *command;	  /* the command, and the type of its records: "profile" */
	const char *aggregation;  /* name of its file in bpf/: "profile" for profile.bpf.c */
	const char *default_keys; /* of --by */
	const char *stream_keys;  /* of --by with --stream; NULL: --stream is not supported */
	bool reads_stacks;  /* samples may lack the stack that the program needs; the account counts these */
	put_fn put;	    /* NULL: puts entries by their keys */
	const char *ahead;  /* a list of its records that is written before them, as a record of this type;
			       NULL: none */
	bool places;	    /* addresses are always mapped to files */
	unsigned int names; /* names of these addresses, unless --by has names: of enum code_detail */
	const struct code_key *code_keys; /* keys of --by that are names; NULL: there are none */
	bool knows_throttling;		  /* its program counts how often the event was throttled */
	/* complete() adds members that only this command's records have. follow() writes other records after
	 * those of all `nr` events. Both may be NULL. */
	void (*complete)(const struct activity *activity, const struct sampled *sampled, json_t *record);
	int (*follow)(struct activity *activity, const struct sampled *sampled, size_t nr);
};

/* Whether stacks of user code are walked by unwind tables. */
bool sampling_unwinds(const struct activity *activity);

/* Puts entries with stacks into a record: a put_fn. */
void sampling_put_stacks(const struct activity *activity, json_t *record, const struct layout *layout,
			 struct reading *reading);

/* How many of `nr` entries a record gets: all of them, or for output that people read as many as fit a
 * screen, unless --top says otherwise; and no more than --memory allows. */
size_t sampling_most_entries(const struct activity *activity, size_t nr);

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

#endif
