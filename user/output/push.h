/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sends documents by HTTP, one after the other: POST requests to one URL. The path of the URL selects the
 * form of the request, as the server at such a path documents it. A request that an overloaded server refuses
 * is repeated after the pause that the server asks for, or after increasing pauses.
 */
#pragma once

#include <stdbool.h>

#include "base/refusal.h"
#include "output/access.h"
#include "output/documents.h"

struct push;

/* What a server has not taken: requests that it refuses for good, or, of OTLP, parts of requests that it has
 * accepted (partialSuccess). */
struct push_rejected {
	bool whole;		      /* requests */
	unsigned long long answers;   /* number of answers that told so */
	unsigned long long points;    /* records in the requests; data points, or profiles */
	char message[301];	      /* that of the last answer; any bytes */
	struct timespec since, until; /* the interval of the documents, CLOCK_REALTIME */
};

#define PUSH_OPTION "option --output" /* its name in messages */

/* Where documents are sent by. A program that was built without libcurl has only check() and open(), which
 * refuse. */
extern const struct pusher {
	/* Refuses what open() would, as far as that is known without the files. Returns 0, or -1 with the
	 * refusal. */
	int (*check)(const char *url, struct document_kind kind, struct refusal *refusal);

	/* `kind` is of static texts. The URL is borrowed and must outlive it. Returns NULL with the refusal
	 * on failure; the caller calls close(). */
	struct push *(*open)(const char *url, struct document_kind kind, const struct push_access *access,
			     struct refusal *refusal);
	void (*close)(struct push *push);

	/* Reads the files that `access` names anew, for the next request. If that fails, what was read last
	 * is kept, and stderr says so. */
	void (*renew)(struct push *push, const struct push_access *access);

	/* A file descriptor that becomes readable when step() has work to do. */
	int (*fd)(const struct push *push);

	/* Whether the first document is being sent. */
	bool (*is_busy)(const struct push *push);

	/* How many times a request was started. */
	unsigned long long (*tries)(const struct push *push);

	/*
	 * Makes progress without blocking. A document that the server has accepted is removed from the list.
	 * One that it refuses for good is reported on stderr, counted as dropped, and removed. Returns 0, or
	 * the errno that prevents sending for now.
	 */
	int (*step)(struct push *push, struct documents *documents);

	/* Why it prevents sending, in words. Valid until the next step. */
	const char *(*why)(const struct push *push);

	/* Takes what was rejected since the last call; of refused requests at most once a second, since the
	 * record that tells it may make another request, unless no call follows. Returns whether there is
	 * anything. */
	bool (*take_rejected)(struct push *push, struct push_rejected *rejected, bool last);
} pusher;
