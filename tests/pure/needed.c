// SPDX-License-Identifier: GPL-2.0-only
/* Prints the files that a command needs: needed COMMAND ARGUMENT… */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "unwind/needed.h"

static void print(void *context, const struct stat *stat, int fd)
{
	char path[64], file[PATH_MAX] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, file, sizeof(file) - 1) > 0)
		puts(file);
}

int main(int argc, char **argv)
{
	needed_each(argv + 1, print, NULL);
	return 0;
}
