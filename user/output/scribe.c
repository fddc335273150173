// SPDX-License-Identifier: GPL-2.0-only
#include "output/scribe.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/packet.h"

struct scribe {
	struct apart process;
	enum scribe_job busy;
	__u64 since_ns; /* when the job was given, CLOCK_MONOTONIC */
};

#define SCRIBE_NAME "nhmtap-output"

struct scribe *scribe_start(scribe_fn serve, const struct scribe_place *place)
{
	struct scribe *scribe = xcalloc(1, sizeof(*scribe));

	if (apart_start(&scribe->process, SCRIBE_NAME, serve, place, place->kept))
		return scribe;
	free(scribe);
	return NULL;
}

void scribe_end(struct scribe *scribe)
{
	if (!scribe)
		return;
	apart_leave(&scribe->process);
	free(scribe);
}

int scribe_fd(const struct scribe *scribe)
{
	return scribe->process.socket;
}

enum scribe_job scribe_busy(const struct scribe *scribe)
{
	return scribe->busy;
}

bool scribe_is_late(const struct scribe *scribe)
{
	return scribe->busy && clock_ns(CLOCK_MONOTONIC) - scribe->since_ns > SCRIBE_LATE_NS;
}

/* --- jobs ------------------------------------------------------------------------------------- */

static int give_job(struct scribe *scribe, const struct scribe_asked *asked, int memory)
{
	if (!packet_send(scribe->process.socket, (struct iovec[]){{(void *)asked, sizeof(*asked)}}, 1,
			 memory))
		return ECHILD;
	scribe->busy = asked->job;
	scribe->since_ns = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

static int give_with(struct scribe *scribe, const struct scribe_asked *asked, const struct iovec *parts,
		     size_t nr)
{
	int memory = memfd_create(SCRIBE_NAME, MFD_CLOEXEC), err = memory < 0 ? errno : 0;

	for (size_t i = 0; i < nr && !err; i++)
		if (write(memory, parts[i].iov_base, parts[i].iov_len) != (ssize_t)parts[i].iov_len)
			err = ENOMEM;
	if (!err)
		err = give_job(scribe, asked, memory);
	if (memory >= 0)
		close(memory);
	return err;
}

int scribe_ask(struct scribe *scribe, enum scribe_job job, bool begun)
{
	return give_job(scribe, &(struct scribe_asked){.job = job, .begun = begun}, -1);
}

/* The most bytes of a job, so that each ends soon if there is an answer. */
#define PUT_MOST (256UL << 10)

int scribe_put(struct scribe *scribe, const struct queue *queue, bool begun)
{
	struct scribe_asked asked = {.job = SCRIBE_PUT, .begun = begun};
	size_t *sizes = xcalloc(queue->nr + 1, sizeof(*sizes)), end = queue->first;
	int err;

	for (; asked.nr < queue->nr && end - queue->first < PUT_MOST; asked.nr++) {
		sizes[asked.nr] = queue->ends[asked.nr] - end;
		end = queue->ends[asked.nr];
	}
	asked.size = asked.nr * sizeof(*sizes) + end - queue->first;
	err = give_with(scribe, &asked,
			(struct iovec[]){{sizes, asked.nr * sizeof(*sizes)},
					 {queue->bytes + queue->first, end - queue->first}},
			2);
	free(sizes);
	return err;
}

int scribe_write(struct scribe *scribe, const struct document *document)
{
	const struct scribe_asked asked = {.job = SCRIBE_DOCUMENT,
					   .size = document->size,
					   .since = document->since,
					   .until = document->until};

	return give_with(scribe, &asked, (struct iovec[]){{document->bytes, document->size}}, 1);
}

int scribe_take(struct scribe *scribe, struct scribe_done *done, int *fd, unsigned long long deadline)
{
	int err = apart_receive(&scribe->process, done, sizeof(*done), fd, deadline);

	if (!err)
		scribe->busy = SCRIBE_NOTHING;
	return err;
}
