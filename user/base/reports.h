/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What sanitizers report of processes that have no stderr: helpers have closed it, and workers have
 * /dev/null. Tests of a build with sanitizers name a file in NHMTAP_REPORTS, and fail if anything is written
 * there.
 */
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define REPORTS "NHMTAP_REPORTS"

/* Its path; NULL: there is none. */
static inline const char *reports_path(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return getenv(REPORTS);
#else
	return NULL;
#endif
}

/* What a program that is executed without an environment has to know: "NHMTAP_REPORTS=…"; NULL: nothing.
 * Belongs to the environment of this process. */
static inline char *reports_variable(void)
{
	const char *path = reports_path();

	return path ? (char *)path - sizeof(REPORTS) : NULL;
}

/* Makes that file descriptor 2 of this process. Does nothing if it can't be opened. */
static inline void reports_keep(void)
{
	const char *path = reports_path();
	int file = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

	if (file < 0 || file == STDERR_FILENO)
		return;
	dup2(file, STDERR_FILENO);
	close(file);
}
