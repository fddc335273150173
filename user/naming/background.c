// SPDX-License-Identifier: GPL-2.0-only
#include "naming/background.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "naming/foreign.h"

struct background {
	struct naming *naming; /* used by the thread while `busy`, otherwise by the caller */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock: */
	bool busy, ending;
	struct background_request request; /* with copies of the texts */
	const struct name *name;	   /* the result */
};

struct background *background_open(struct naming *naming)
{
	struct background *background = xcalloc(1, sizeof(*background));

	background->naming = naming;
	pthread_mutex_init(&background->lock, NULL);
	condition_init(&background->changed);
	return background;
}

static const struct name *name_now(struct naming *naming, const struct background_request *request)
{
	switch (request->kind) {
	case NAME_OF_FILE:
		return naming_file(naming, request->path, request->build_id, request->address);
	case NAME_OF_DATUM:
		return naming_datum(naming, request->path, request->build_id, request->address,
				    request->distance);
	case NAME_OF_ACCESS:
		return naming_access(naming, request->path, request->build_id, request->address);
	case NAME_OF_JIT:
		return naming_jit(naming, request->path, &request->writer, request->address);
	default:
		return naming_kernel(naming, request->address);
	}
}

static void *serve_request(void *argument)
{
	struct background *background = argument;

	pthread_mutex_lock(&background->lock);
	while (!background->ending) {
		if (background->busy) {
			pthread_mutex_unlock(&background->lock);
			background->name = name_now(background->naming, &background->request);
			pthread_mutex_lock(&background->lock);
			background->busy = false;
			pthread_cond_broadcast(&background->changed);
		} else {
			pthread_cond_wait(&background->changed, &background->lock);
		}
	}
	pthread_mutex_unlock(&background->lock);
	return NULL;
}

/* If the thread can't be started, the caller looks up names itself. */
static bool start_thread(struct background *background)
{
	if (!background->started)
		background->started = thread_start(&background->thread, serve_request, background);
	return background->started;
}

static bool is_past(__u64 deadline)
{
	return deadline && clock_ns(CLOCK_MONOTONIC) > deadline;
}

/* Waits for the lookup in the thread. Returns whether it is done. */
static bool wait_until(struct background *background, __u64 deadline)
{
	bool idle, waiting = true;

	pthread_mutex_lock(&background->lock);
	while (background->busy && waiting && !is_past(deadline))
		waiting = condition_wait(&background->changed, &background->lock, deadline);
	idle = !background->busy;
	pthread_mutex_unlock(&background->lock);
	return idle;
}

static void release_request(struct background_request *request)
{
	free((char *)request->path);
	free((char *)request->build_id);
	*request = (struct background_request){0};
}

static char *copied(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

/* Returns NULL if something must be read first. */
static const struct name *known_name(struct naming *naming, const struct background_request *request)
{
	switch (request->kind) {
	case NAME_OF_FILE:
		return naming_known_file(naming, request->path, request->build_id, request->address);
	case NAME_OF_DATUM:
		return naming_known_datum(naming, request->path, request->build_id, request->address,
					  request->distance);
	case NAME_OF_ACCESS:
		return naming_known_access(naming, request->path, request->build_id, request->address);
	case NAME_OF_JIT:
		return NULL; /* the map may have grown */
	default:
		return naming_known_kernel(naming, request->address);
	}
}

const struct name *background_name(struct background *background, const struct background_request *wanted,
				   __u64 deadline)
{
	struct background_request request = *wanted;
	const struct name *name;

	if (!wait_until(background, deadline))
		return NULL;
	name = deadline ? known_name(background->naming, &request) : NULL;
	/* Such names are looked up again at each call, so the thread's result would never be used later. */
	if (name || (request.kind == NAME_OF_JIT && is_past(deadline)))
		return name;
	if (!deadline || !start_thread(background))
		return name_now(background->naming, &request);
	release_request(&background->request);
	request.path = copied(wanted->path);
	request.build_id = copied(wanted->build_id);
	pthread_mutex_lock(&background->lock);
	background->request = request;
	background->busy = true;
	pthread_cond_broadcast(&background->changed);
	pthread_mutex_unlock(&background->lock);
	return wait_until(background, deadline) ? background->name : NULL;
}

const struct name *background_known(struct background *background, const char *build_id, __u64 offset)
{
	return wait_until(background, 1) ? naming_known_build_id(background->naming, build_id, offset) : NULL;
}

void background_forget(struct background *background, __u64 since)
{
	if (wait_until(background, 1))
		naming_forget(background->naming, since);
}

void background_close(struct background *background)
{
	if (!background)
		return;
	foreign_hurry(true);
	wait_until(background, 0);
	foreign_hurry(false);
	pthread_mutex_lock(&background->lock);
	background->ending = true;
	pthread_cond_broadcast(&background->changed);
	pthread_mutex_unlock(&background->lock);
	if (background->started)
		pthread_join(background->thread, NULL);
	release_request(&background->request);
	pthread_cond_destroy(&background->changed);
	pthread_mutex_destroy(&background->lock);
	free(background);
}
