// SPDX-License-Identifier: GPL-2.0-only
/* Takes the place of screen.c in a program that is built without ncurses. */
#include "base/late.h"
#include "top/screen.h"

DEFINE_LATE_WITHOUT(libncurses);

static int refuse_screen(bool *utf8, int *fd, struct refusal *refusal)
{
	return late_need(&libncurses, "command", "top", refusal);
}

const struct terminal_screen terminal_screen = {.open = refuse_screen};
