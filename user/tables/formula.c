// SPDX-License-Identifier: GPL-2.0-only
#include "tables/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The most nested parentheses. A table may come from anywhere, and the stack is finite. */
#define DEPTH_MAX 32

struct formula_parser {
	struct formula *formula;
	size_t at;
	int depth;
	char *why;
	size_t size;
};

static int set_why(struct formula_parser *parser, const char *why)
{
	snprintf(parser->why, parser->size, "%s", why);
	return -1;
}

/* Reports that something else than expected was found. */
static int report_unexpected(struct formula_parser *parser, const char *expected)
{
	const char *rest = parser->formula->text + parser->at;

	if (*rest && !isalnum((unsigned char)*rest) && !strchr("+-*/()", *rest)) {
		snprintf(parser->why, parser->size,
			 "has something that is no event, number or operator: \"%.40s\"", rest);
		return -1;
	}
	return set_why(parser, expected);
}

/* Skips spaces and returns the next character. */
static char next(struct formula_parser *parser)
{
	const char *text = parser->formula->text;

	parser->at += strspn(text + parser->at, " ");
	return text[parser->at];
}

static void append_step(struct formula_parser *parser, struct formula_step step)
{
	struct formula *formula = parser->formula;

	*xappend(formula->steps, formula->nr_steps) = step;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The length of a name, including the characters that join words: EVENT.UMASK, EVENT:UMASK|UMASK,
 * page-faults, cycles:k. */
static size_t name_length(const char *text)
{
	size_t length = 0;

	while (in_word(text[length]) ||
	       (text[length] && strchr(".:|-", text[length]) && in_word(text[length + 1])))
		length++;
	return length;
}

static size_t input_number(struct formula *formula, const char *name, size_t length)
{
	size_t i = 0;

	while (i < formula->nr_inputs &&
	       (strlen(formula->inputs[i]) != length || strncmp(formula->inputs[i], name, length)))
		i++;
	if (i < formula->nr_inputs)
		return i;
	*xappend(formula->inputs, formula->nr_inputs) = xasprintf("%.*s", (int)length, name);
	return i;
}

static int parse_sum(struct formula_parser *parser, struct span *span);

static int parse_parentheses(struct formula_parser *parser, struct span *span)
{
	size_t from = parser->at++;

	if (++parser->depth > DEPTH_MAX)
		return set_why(parser, "has too many parentheses in each other");
	if (parse_sum(parser, span))
		return -1;
	if (next(parser) != ')')
		return report_unexpected(parser, "lacks a closing parenthesis");
	parser->at++;
	parser->depth--;
	*span = (struct span){from, parser->at};
	return 0;
}

static int parse_factor(struct formula_parser *parser, struct span *span)
{
	char first = next(parser);
	const char *text = parser->formula->text + parser->at;
	struct formula_step made = {.span.from = parser->at};
	size_t length;

	if (first == '(')
		return parse_parentheses(parser, span);
	if (isdigit((unsigned char)first)) {
		length = strspn(text, "0123456789");
		if (text[length] == '.' && isdigit((unsigned char)text[length + 1]))
			length += 1 + strspn(text + length + 1, "0123456789");
		made.kind = FORMULA_NUMBER;
		made.number = strtod(text, NULL);
	} else if (isalpha((unsigned char)first)) {
		length = name_length(text);
		made.kind = FORMULA_INPUT;
		made.input = input_number(parser->formula, text, length);
	} else {
		return report_unexpected(parser, "lacks an event or number");
	}
	parser->at += length;
	*span = made.span = (struct span){made.span.from, parser->at};
	append_step(parser, made);
	return 0;
}

/* Parses operands joined by operators of the same precedence, which associate to the left. */
static int parse_joined(struct formula_parser *parser, struct span *span, const char *operators,
			int (*operand)(struct formula_parser *parser, struct span *span))
{
	struct span right;
	char operator;

	if (operand(parser, span))
		return -1;
	while ((operator= next(parser)) && strchr(operators, operator)) {
		parser->at++;
		if (operand(parser, &right))
			return -1;
		span->to = right.to;
		append_step(parser, (struct formula_step){FORMULA_JOIN, .operator = operator, .span = right});
	}
	return 0;
}

static int parse_product(struct formula_parser *parser, struct span *span)
{
	return parse_joined(parser, span, "*/", parse_factor);
}

static int parse_sum(struct formula_parser *parser, struct span *span)
{
	return parse_joined(parser, span, "+-", parse_product);
}

int formula_parse(struct formula *formula, const char *text, char *why, size_t size)
{
	struct formula_parser parser = {formula, 0, 0, why, size};
	struct span whole;
	char end[64];
	int err;

	*formula = (struct formula){.text = text};
	err = parse_sum(&parser, &whole);
	if (!err && next(&parser)) {
		snprintf(end, sizeof(end), "does not end at \"%.40s\"", text + parser.at);
		err = report_unexpected(&parser, end);
	}
	if (!err && !formula->nr_inputs)
		err = set_why(&parser, "names no event");
	if (err)
		formula_release(formula);
	return err;
}

void formula_release(struct formula *formula)
{
	for (size_t i = 0; i < formula->nr_inputs; i++)
		free(formula->inputs[i]);
	free(formula->inputs);
	free(formula->steps);
	*formula = (struct formula){0};
}

static double compute_operator(char operator, double left, double right)
{
	switch (operator) {
	case '+':
		return left + right;
	case '-':
		return left - right;
	case '*':
		return left * right;
	default:
		return left / right;
	}
}

static int divided_by_zero(const struct formula *formula, const struct span *divisor, char *why, size_t size)
{
	snprintf(why, size, "it would be divided by %.*s, which is 0", (int)(divisor->to - divisor->from),
		 formula->text + divisor->from);
	return -1;
}

int formula_value(const struct formula *formula, const double *inputs, double *value, char *why, size_t size)
{
	double *stack = xcalloc(formula->nr_steps, sizeof(*stack));
	size_t depth = 0;
	int err = 0;

	for (size_t i = 0; i < formula->nr_steps && !err; i++) {
		const struct formula_step *step = &formula->steps[i];

		if (step->kind != FORMULA_JOIN) {
			stack[depth++] = step->kind == FORMULA_NUMBER ? step->number : inputs[step->input];
			continue;
		}
		depth--;
		if (step->operator== '/' && stack[depth] == 0)
			err = divided_by_zero(formula, &step->span, why, size);
		else
			stack[depth - 1] = compute_operator(step->operator, stack[depth - 1], stack[depth]);
	}
	*value = stack[0];
	free(stack);
	if (!err && !isfinite(*value)) {
		snprintf(why, size, "it is too large for a number");
		err = -1;
	}
	return err;
}
