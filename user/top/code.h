/* SPDX-License-Identifier: GPL-2.0-only */
/* The samples of stored records in the code of one function, and its instructions and lines with them. */
#pragma once

#include <jansson.h>

#include "annotate/annotation.h"
#include "output/text.h"

struct sampled_code;

/* function: as calls_name() writes it. One that is inlined stands for those it is inlined in. */
struct sampled_code *code_new(const char *function);
void code_release(struct sampled_code *code);

/* Takes in a record of any type, in the order of the stream. It is not kept. */
void code_take(struct sampled_code *code, const json_t *record);

/* Appends the code, or why there is none; nothing if no sample was in the function. */
void code_print(struct sampled_code *code, struct annotator *annotator, struct text *text);
