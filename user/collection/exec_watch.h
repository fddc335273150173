/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the kernel stopped counting a command because of the program that it executed. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <linux/types.h>

struct exec_watch;

/*
 * Watches a process from now on, not its children. begin_new_exec() (fs/exec.c) takes a task's events away,
 * as if it had ended, when it executes a program that changes its user or group, or that it may not read. The
 * kernel's notes show this: after an exec comes an exit, and no mapping of a program in between.
 * The caller owns the result up to exec_watch_close(). NULL: the kernel refuses.
 */
struct exec_watch *exec_watch_open(pid_t pid);

/* Whether the kernel has taken the process's events away, as far as is known now. */
bool exec_watch_cut(struct exec_watch *watch);

/* When the process first executed a program (CLOCK_MONOTONIC, ns); 0: not yet. */
__u64 exec_watch_time_ns(struct exec_watch *watch);

/* NULL is allowed. */
void exec_watch_close(struct exec_watch *watch);
