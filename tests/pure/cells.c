/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads readings of two cells, of which the first includes the second, one reading per line: "VALUE ENABLED
 * RUNNING VALUE ENABLED RUNNING". Prints the bound of each cell: low, high.
 */
#include <stdio.h>

#include "offcore/cells.h"

int main(void)
{
	static struct matrix matrix = {.cells = {{.bits = 3}, {.bits = 1}}, .nr_cells = 2};
	struct looks looks = {.matrix = &matrix, .turn_ns = 1000000};
	struct count total[2] = {0};
	struct measured_cells cells[2];
	struct turns turns;
	char line[400];

	turns_open(&turns, 2, 1, 1000000);
	while (fgets(line, sizeof(line), stdin)) {
		struct count now[2] = {0};

		sscanf(line, "%llu %llu %llu %llu %llu %llu", &now[0].value, &now[0].enabled_ns,
		       &now[0].running_ns, &now[1].value, &now[1].enabled_ns, &now[1].running_ns);
		turns_add(&turns, now, 1);
		for (int i = 0; i < 2; i++)
			count_add(&total[i], &now[i]);
		looks.interval_ns += now[1].enabled_ns;
	}
	looks.counts = total;
	looks.turns = &turns;
	cells_measure(&looks, cells);
	for (int i = 0; i < 2; i++)
		printf("%.17g %.17g\n", cells[i].bound.low, cells[i].bound.high);
	turns_close(&turns);
	return 0;
}
