/* SPDX-License-Identifier: GPL-2.0-only */
/* formula FORMULA [VALUE…]: prints the names in the formula and, given values, its value. */
#include <stdio.h>
#include <stdlib.h>

#include "tables/formula.h"

int main(int argc, char **argv)
{
	struct formula formula;
	double values[64], value;
	char why[200];
	int err;

	if (formula_parse(&formula, argv[1], why, sizeof(why))) {
		puts(why);
		return 1;
	}
	for (size_t i = 0; i < formula.nr_inputs; i++) {
		printf("%s%s", i ? " " : "", formula.inputs[i]);
		values[i] = (int)i + 2 < argc ? strtod(argv[i + 2], NULL) : 0;
	}
	puts("");
	err = argc > 2 && formula_value(&formula, values, &value, why, sizeof(why));
	if (argc > 2)
		err ? puts(why) : printf("%.17g\n", value);
	formula_release(&formula);
	return err ? 2 : 0;
}
