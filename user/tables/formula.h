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
#ifndef NHMTAP_FORMULA_H
#define NHMTAP_FORMULA_H

#include <stdbool.h>
#include <stddef.h>

/* The name of the interval's length in ns in a formula; perf's tool event. */
#define FORMULA_DURATION "duration_time"

struct formula {
	const char *text; /* the caller's, and to outlive the formula */
	/* In the order in which a stack computes them: operands, then what joins them. */
	struct formula_step {
		enum { FORMULA_NUMBER, FORMULA_INPUT, FORMULA_JOIN } kind;
		double number;
		size_t input;
		char operator;
		struct span {
			size_t from, to;
		} span; /* of text: the operand, or the right one of an operator */
	} * steps;
	size_t nr_steps;
	char **inputs; /* the names, each once, in their order */
	size_t nr_inputs;
};

/* Returns 0, or -1 with a sentence's end in why ("lacks a closing parenthesis"). The formula owns its
 * lists up to formula_release(), which may also be called on a zeroed one. */
int formula_parse(struct formula *formula, const char *text, char *why, size_t size);
void formula_release(struct formula *formula);

/* The value for these inputs, which stand in the order of formula->inputs. Returns 0, or -1 with the
 * reason in why: a division by zero, or a result that is not finite. */
int formula_value(const struct formula *formula, const double *inputs, double *value, char *why, size_t size);

#endif
