// SPDX-License-Identifier: GPL-2.0-only
/* Takes the place of filter.c in a program that is built without libseccomp: there is no worker then, because
 * files of others are only read where they can do no harm. */
#include "confined/filter.h"

#include "base/late.h"
#include "naming/message.h"

DEFINE_LATE_WITHOUT(libseccomp);

const char *filter_load_library(void)
{
	return NEVER_BUILT;
}

int filter_system_calls(void)
{
	return -1;
}
