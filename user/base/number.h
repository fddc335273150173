/* SPDX-License-Identifier: GPL-2.0-only */
/* Numbers in texts that people write. strtoull(3) and strtod(3) also take blanks, signs, " -1" as 2^64-1,
 * "nan" and "0x1p3"; here such a text is no number. */
#pragma once

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

/* Takes a text of decimal digits. Returns whether it is a number below 2^64. */
static inline bool number_whole(const char *text, __u64 *value)
{
	char *end;

	errno = 0;
	*value = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
	return isdigit((unsigned char)text[0]) && !errno && !*end;
}

/* Takes "2", "2.5", ".5", "1e-3" at the beginning of a text, and sets *end to what is behind it. Returns
 * whether there is such a number. */
static inline bool number_decimal(const char *text, double *value, const char **end)
{
	const char *digits = text + (*text == '.');
	char *behind;

	if (!isdigit((unsigned char)*digits) || (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')))
		return false;
	*value = strtod(text, &behind);
	*end = behind;
	return isfinite(*value);
}
