/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A formula over names, as the metrics of events/ have it:
 *
 *     sum     = product { ("+" | "-") product }
 *     product = factor { ("*" | "/") factor }
 *     factor  = name | number | "(" sum ")"
 *
 * A name is an event's, modifiers included: INST_RETIRED.ANY, page-faults, cycles:k. A '-' inside a
 * word belongs to the name, as in page-faults; a difference has spaces around it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The name that stands for the length of the interval in ns; perf's tool event. */
#define FORMULA_DURATION "duration_time"

struct formula {
	const char *text; /* owned by the caller; must outlive the formula */
	/* In the order of a stack machine: operands come before their operator. */
	struct formula_step {
		enum { FORMULA_NUMBER, FORMULA_INPUT, FORMULA_JOIN } kind;
		double number;
		size_t input;
		char operator;
		struct span {
			size_t from, to;
		} span; /* its part of the text; of an operator, the right operand */
	} * steps;
	size_t nr_steps;
	char **inputs; /* the names, each once, in the order of their first use */
	size_t nr_inputs;
};

/* Parses a formula. It owns its lists up to formula_release(), which may also be called on a zeroed one.
 * Returns 0, or -1 with the end of a sentence in `why` ("lacks a closing parenthesis"). */
int formula_parse(struct formula *formula, const char *text, char *why, size_t size);
void formula_release(struct formula *formula);

/* Computes the value. The inputs are in the order of formula->inputs. Returns 0, or -1 with the reason in
 * `why`: a division by zero, or a result that is not finite. */
int formula_value(const struct formula *formula, const double *inputs, double *value, char *why, size_t size);
