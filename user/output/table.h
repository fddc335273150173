/* SPDX-License-Identifier: GPL-2.0-only */
/* The blocks of the people's form that have a file of their own; table.c calls them by record type. */
#ifndef NHMTAP_TABLE_H
#define NHMTAP_TABLE_H

#include <jansson.h>

#include "output/output.h"
#include "output/text.h"

typedef void (*table_fn)(struct text *text, const struct stream *stream, const json_t *record);

/* 1234567 → "1,234,567", in every locale; returns buffer. */
const char *grouped(json_int_t number, char *buffer, size_t size);

/* explain's: table_event.c */
void event_table(struct text *text, const struct stream *stream, const json_t *record);
void disagreement_table(struct text *text, const struct stream *stream, const json_t *record);
void data_sources_table(struct text *text, const struct stream *stream, const json_t *record);
/* branch's: table_branch.c */
void branch_table(struct text *text, const struct stream *stream, const json_t *record);
/* list's: table_listed.c */
void listed_table(struct text *text, const struct stream *stream, const json_t *record);

#endif
