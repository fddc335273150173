/* SPDX-License-Identifier: GPL-2.0-only */
/* The words of a command line that is being made for a process. */
#pragma once

#include <stddef.h>
#include <linux/types.h>

/* Begins as {0}. The words are copies. */
struct arguments {
	char **words; /* terminated by NULL once there is one */
	size_t nr, room;
};

/* Adds a word, or an option with its value, or nothing if the value is NULL or 0. */
void arguments_add(struct arguments *arguments, const char *word);
void arguments_add_option(struct arguments *arguments, const char *option, const char *value);
void arguments_add_number(struct arguments *arguments, const char *option, __u64 value);
/* Takes the last words away, so many. */
void arguments_drop(struct arguments *arguments, size_t nr);

void arguments_release(struct arguments *arguments);
