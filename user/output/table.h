/* SPDX-License-Identifier: GPL-2.0-only */
/* The blocks of the people's form that have a file of their own; table.c calls them by record type. */
#ifndef NHMTAP_TABLE_H
#define NHMTAP_TABLE_H

#include <jansson.h>

#include "output/calls.h"
#include "output/member.h"
#include "output/output.h"
#include "output/text.h"

typedef void (*table_fn)(struct text *text, const struct stream *stream, const json_t *record);


/* profile's, where entries have stacks: table_stacks.c */
void rows_of_stacks(struct text *text, const struct calls *calls, const json_t *entries, json_int_t total);
/* explain's: table_event.c */
void event_table(struct text *text, const struct stream *stream, const json_t *record);
void disagreement_table(struct text *text, const struct stream *stream, const json_t *record);
void data_sources_table(struct text *text, const struct stream *stream, const json_t *record);
/* branch's: table_branch.c */
void branch_table(struct text *text, const struct stream *stream, const json_t *record);
void traced_table(struct text *text, const struct stream *stream, const json_t *record);
/* list's: table_listed.c */
void listed_table(struct text *text, const struct stream *stream, const json_t *record);
/* mem's: table_loads.c */
void mem_table(struct text *text, const struct stream *stream, const json_t *record);
void sample_table(struct text *text, const struct stream *stream, const json_t *record);
void shared_line_table(struct text *text, const struct stream *stream, const json_t *record);
/* offcore's: table_offcore.c */
void offcore_table(struct text *text, const struct stream *stream, const json_t *record);
/* doctor's: table_doctor.c; machine_table is that of its start record */
void machine_table(struct text *text, const struct stream *stream, const json_t *record);
void processor_table(struct text *text, const struct stream *stream, const json_t *record);
void kernel_table(struct text *text, const struct stream *stream, const json_t *record);
void permission_table(struct text *text, const struct stream *stream, const json_t *record);
void counters_table(struct text *text, const struct stream *stream, const json_t *record);
void facility_table(struct text *text, const struct stream *stream, const json_t *record);

/* Whether a start record is doctor's. */
bool of_doctor(const json_t *start);
/* The section that a record of doctor's stands in; "" for the records of others. */
const char *doctor_heading(const json_t *record);

#endif
