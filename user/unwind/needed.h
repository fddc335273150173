/* SPDX-License-Identifier: GPL-2.0-only */
/* Which files a command will map for its code: its program, the interpreter of that, and the libraries that
 * they name, as the dynamic linker finds them; and those of programs among its arguments, which taskset, say,
 * executes. Nothing is executed here; files that can't be determined are left out. */
#ifndef NHMTAP_UNWIND_NEEDED_H
#define NHMTAP_UNWIND_NEEDED_H

/* Calls `each` with a descriptor of each file, which is closed afterwards. `command`: as execvp(3) takes it.
 */
void needed_each(char **command, void (*each)(void *context, int fd), void *context);

#endif
