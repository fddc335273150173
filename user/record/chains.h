/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stacks as values of a record. A frame stands once in a list of frames, and stacks name it by its number
 * there. Addresses of processes become places in files where these are known; stacks of different processes
 * that are then the same are one chain.
 */
#ifndef NHMTAP_RECORD_CHAINS_H
#define NHMTAP_RECORD_CHAINS_H

#include <stdbool.h>
#include <jansson.h>
#include <linux/types.h>

#include "naming/codes.h"

struct chains;
struct stacks;

/* `stacks` are those that a reading's keys name; they and codes must live as long. `detail`: what frames are
 * distinguished by, of enum code_detail. The caller owns the result up to chains_release(). */
struct chains *chains_new(const struct stacks *stacks, struct codes *codes, unsigned int detail);
void chains_release(struct chains *chains);

/* What a key's stack becomes: the number of its chain, from STACK_FIRST on, or why there is none (enum
 * stack_id). `comm`: the key's, see key_comm(). */
__u32 chains_number(struct chains *chains, __u32 stack, const char *comm);

/* Puts the chain of a number into an entry: "stack", and what is missing of it. */
void chains_put(struct chains *chains, json_t *entry, __u32 number);

/* The list of the frames of all chains that were put, which is then the caller's. */
json_t *chains_frames(struct chains *chains);

/* Adds samples to the account, and the account as a new reference: what became of the samples' stacks.
 * `by_tables`: users' stacks were walked by tables, as far as there were any; it then says how the walks
 * ended. */
void chains_count(struct chains *chains, __u32 number, __u64 samples);
json_t *chains_account(const struct chains *chains, bool by_tables);

#endif
