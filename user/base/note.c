// SPDX-License-Identifier: GPL-2.0-only
#include "base/note.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/visible.h"

static __u64 began_ns; /* CLOCK_MONOTONIC; 0: notes are off */

void note_begin(bool verbose)
{
	began_ns = verbose ? clock_ns(CLOCK_MONOTONIC) : 0;
}

void note(const char *format, ...)
{
	char text[1024];
	va_list args;

	if (!began_ns)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say("nhmtap: %.3f s: %s", (clock_ns(CLOCK_MONOTONIC) - began_ns) / 1e9, text);
}
