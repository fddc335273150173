// SPDX-License-Identifier: GPL-2.0-only
#include "plan/unwind.h"

#include <stdio.h>
#include <string.h>

/*
 * Whether this kernel may lock up. Since "mm/usercopy: Detect vmalloc overruns" (0aef499f3172, 5.19), a
 * program that reads user memory takes a lock that the interrupted code may hold: the machine locks up
 * (Debian's bug 1033398). This is fixed by "mm: Fix copy_from_user_nofault()." (d319f344561d, 6.4), also in
 * 6.1.36 (Debian's linux 6.1.37-1) and 6.3.10. By then 5.19, 6.0 and 6.2 were no longer supported.
 */
static bool locks_up(const char *version)
{
	int major = 0, minor = 0, patch = 0;

	sscanf(version, "%d.%d.%d", &major, &minor, &patch);
	if (major == 5)
		return minor >= 19;
	if (major != 6 || minor > 3)
		return false;
	return minor == 1 ? patch < 36 : minor == 3 ? patch < 10 : true;
}

const char *unwind_forbidden(const struct host *host)
{
	return locks_up(host->version)
		       ? "this kernel may lock up when a BPF program reads a program's stack (Linux 5.19 to "
			 "6.1.35, 6.2, and 6.3 up to 6.3.9; mended by \"mm: Fix copy_from_user_nofault().\")"
		       : NULL;
}

int plan_unwind(const struct options *options, const struct host *host, bool *tables, const char **why,
		struct refusal *refusal)
{
	const char *way = options->unwind ? options->unwind : UNWIND_AUTO;

	*why = NULL;
	*tables = options->call_graph && strcmp(way, UNWIND_FP);
	if (!*tables)
		return 0;
	*why = unwind_forbidden(host);
	if (!*why)
		return 0;
	*tables = false;
	if (!strcmp(way, UNWIND_AUTO))
		return 0;
	refuse(refusal, STATUS_REFUSED, "option --unwind '%s'", way);
	because(refusal, "%s", *why);
	return instead(refusal, "install a newer kernel, or: --unwind fp");
}
