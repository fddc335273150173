/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stacks as values of a record. The record has a list of frames, each once, and a stack is a list of indices
 * into it. Addresses in processes become places in files where these are known. Stacks of several processes
 * that are equal then become one chain.
 */
#pragma once

#include <stdbool.h>
#include <jansson.h>
#include <linux/types.h>

#include "naming/codes.h"
#include "record/compact.h"

struct chains;
struct stacks;
struct stack_account;

/*
 * `stacks` are the stacks that the keys of a reading refer to. `stacks` and `codes` are borrowed and must
 * outlive the result. `detail` says how frames are distinguished (enum code_detail). The caller owns the
 * result, and calls chains_release().
 */
struct chains *chains_new(const struct stacks *stacks, struct codes *codes, unsigned int detail);
void chains_release(struct chains *chains);

/* The numbers of stacks are those of other stacks from now on. Chains stay. */
void chains_of(struct chains *chains, const struct stacks *stacks);

/* Whether there is time for the names of all frames of a stack: see codes_try(). */
bool chains_try(struct chains *chains, __u32 stack, const char *comm);

/* The number that stands for a stack in a record's key: that of its chain, from STACK_FIRST on, or the reason
 * why there is no stack (enum stack_id). `comm` is the key's comm, see key_comm(). */
__u32 chains_number(struct chains *chains, __u32 stack, const char *comm);

/* Why a stack has no frames (enum stack_id), and why it ends too early (enum stack_end), as records say it.
 */
const char *chains_lost(__u32 stack);
const char *chains_incomplete(unsigned int end);

/* Appends to an entry's members the chain of this number: "stack", and what is missing of it. */
void chains_append(struct chains *chains, struct compact *entry, __u32 number);

/* Puts the list of the frames of all chains that were appended to entries into the record. No more may be
 * appended afterwards. */
void chains_put_frames(struct chains *chains, json_t *record);

/* Adds to the account samples whose stacks were not kept. */
void chains_count_others(struct chains *chains, const struct stack_account *others);

/*
 * chains_count() adds samples to the account; chains_account() returns the account, a new reference: what
 * became of the samples' stacks. `by_tables` says that users' stacks were walked by unwind tables where there
 * are any; the account then also says how the walks ended.
 */
void chains_count(struct chains *chains, __u32 number, __u64 samples);
json_t *chains_account(const struct chains *chains, bool by_tables);
