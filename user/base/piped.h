/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a file from its beginning to its end that may be on a file system that does not answer: a process
 * apart opens and reads it, and writes what it reads into a pipe. So whoever waits for the file waits for the
 * pipe, and a signal ends that. The process also unpacks a file FILE.zst. */
#pragma once

#include <sys/stat.h>

#include "base/apart.h"

struct piped {
	int fd;		    /* to be read: the pipe, or the file itself if nobody has to be waited for */
	struct apart apart; /* who reads the file; all zero: nobody */
};

/* Opens the file. `stat` is the file's. Waits as long as open(2) would, and says on stderr if that is long.
 * Returns 0, or an errno. */
int piped_open(struct piped *piped, const char *path, struct stat *stat);

/* Closes it. Returns the errno of a read that failed in the other process, or 0. */
int piped_close(struct piped *piped);
