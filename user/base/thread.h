/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads in addition to the session's main thread. */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <linux/types.h>

#include "base/clock.h"

/* Starts a thread with all signals blocked. Returns whether that succeeded. */
static inline bool thread_start(pthread_t *thread, void *(*work)(void *argument), void *argument)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = !pthread_create(thread, NULL, work, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/* Initializes a condition variable whose timeouts are by CLOCK_MONOTONIC: see condition_wait(). */
static inline void condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* Waits for the condition until the deadline (CLOCK_MONOTONIC, ns; 0: no deadline). Returns false after the
 * deadline. */
static inline bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, __u64 deadline)
{
	struct timespec end = timespec_of(deadline);

	return !(deadline ? pthread_cond_timedwait(condition, lock, &end)
			  : pthread_cond_wait(condition, lock));
}
