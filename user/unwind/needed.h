/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the files with code that a command will map: its program, the program's interpreter, and the
 * libraries that they name, as the dynamic linker finds them. The same for the command's arguments that are
 * programs, because commands such as taskset execute them. Nothing is executed here. Files that can't be
 * determined are left out.
 */
#pragma once

#include <sys/stat.h>

/* Calls `each` with what stat(2) tells of each file and a descriptor, which is closed after the call and may
 * be that of a copy. `command`: as for execvp(3). */
void needed_each(char **command, void (*each)(void *context, const struct stat *stat, int fd), void *context);
