// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes formulas: no crash, no leak, and a formula has a value or says why not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/formula.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = strndup((const char *)data, size), why[128] = "";
	struct formula formula = {0};
	double *inputs, value = NAN;

	if (formula_parse(&formula, text, why, sizeof(why))) {
		if (!why[0])
			abort();
	} else {
		inputs = calloc(formula.nr_inputs + 1, sizeof(*inputs));
		for (size_t i = 0; i < formula.nr_inputs; i++)
			inputs[i] = i % 3 * 1e200;
		if (formula_value(&formula, inputs, &value, why, sizeof(why)) ? !why[0] : !isfinite(value))
			abort();
		free(inputs);
	}
	formula_release(&formula);
	free(text);
	return 0;
}
