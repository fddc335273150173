// SPDX-License-Identifier: GPL-2.0-only
#include "output/output.h"
int output_table(struct sink *sink, const json_t *record)
{
	return 0;
}
