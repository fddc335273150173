// SPDX-License-Identifier: GPL-2.0-only
#include "output/scribe_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/local.h"
#include "base/packet.h"
#include "host/privileges.h"
#include "output/documents.h"
#include "output/scribe.h"
#include "output/sink.h"

struct server {
	int socket;
	const struct scribe_place *place;
	struct sink sink;
	bool opened; /* `sink` was opened once */
};

static bool has_contents(int fd)
{
	struct stat stat;

	return !fstat(fd, &stat) && stat.st_size;
}

/* Whether a server is behind what was opened: the caller can't write to it without waiting. */
static bool needs_server(const struct sink *sink)
{
	return sink->regular && !local_is(sink->fd, 0);
}

/* Returns the descriptor for the caller, or -1. */
static int open_file(struct server *server, const struct scribe_asked *asked, struct scribe_done *done)
{
	struct sink *sink = &server->sink;
	struct refusal refusal = {0};

	if (server->opened) {
		sink->unopened = true;
		sink->again_ns = 0;
		sink_open_again(sink);
	} else if (sink_open(sink, server->place->path, asked->begun, true, NULL, &refusal)) {
		sink->stopped = refusal.error;
	}
	done->error = sink->stopped;
	if (done->error)
		return -1;
	server->opened = true;
	sink->most = ~0UL >> 1; /* a full disk is told, and what waits is tried again */
	done->old = has_contents(sink->fd);
	done->local = !needs_server(sink);
	return done->local ? sink->fd : -1;
}

static bool is_local_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	bool local;
	int fd;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	local = fd >= 0 && local_is(fd, 0);
	if (fd >= 0)
		close(fd);
	return local;
}

static void try(const struct server *server, struct scribe_done *done)
{
	struct documents documents;

	done->error = -documents_open(&documents, server->place->path);
	done->local = !done->error && is_local_folder(server->place->path);
}

/* What could not be written is taken back: the caller has it still. */
static void put_records(struct server *server, const struct scribe_asked *asked, const char *memory,
			struct scribe_done *done)
{
	struct sink *sink = &server->sink;
	const size_t *sizes = (const void *)memory;
	const char *at = memory + asked->nr * sizeof(*sizes);

	sink->begun = sink->begun || asked->begun;
	for (size_t i = 0; i < asked->nr; i++) {
		sink_put(sink, at, sizes[i]);
		at += sizes[i];
	}
	done->error = -sink_flush(sink);
	if (!done->error)
		done->error = sink->stopped ? sink->stopped : sink_has_left(sink) ? EAGAIN : 0;
	sink_take_back(sink);
	done->written = asked->nr - sink_records(sink);
	sink_forget(sink);
}

static void write_document(const struct server *server, const struct scribe_asked *asked, const char *memory,
			   struct scribe_done *done)
{
	struct document document = {
		.bytes = (char *)memory, .size = asked->size, .since = asked->since, .until = asked->until};
	struct documents documents;

	documents_begin(&documents, server->place->path);
	documents_add(&documents, &document, 0, 0);
	done->error = -documents_write(&documents);
	documents_release(&documents);
}

/* Returns the descriptor that goes with the answer, or -1. */
static int do_job(struct server *server, const struct scribe_asked *asked, const char *memory,
		  struct scribe_done *done)
{
	switch (asked->job) {
	case SCRIBE_OPEN:
		return open_file(server, asked, done);
	case SCRIBE_TRY:
		try(server, done);
		return -1;
	case SCRIBE_PUT:
		put_records(server, asked, memory, done);
		return -1;
	case SCRIBE_DOCUMENT:
		write_document(server, asked, memory, done);
		return -1;
	case SCRIBE_CLOSE:
		done->error = close(server->sink.fd) ? errno : 0;
		return -1;
	case SCRIBE_NOTHING:
		break;
	}
	done->error = EINVAL;
	return -1;
}

static void *map_records(int fd, size_t size)
{
	void *memory = fd < 0 || !size ? NULL : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static bool serve_one(struct server *server)
{
	struct scribe_asked asked;
	struct scribe_done done = {0};
	int passed, fd = -1;
	void *memory;

	if (packet_receive(server->socket, &asked, sizeof(asked), &passed) != sizeof(asked))
		return false;
	memory = map_records(passed, asked.size);
	if (passed >= 0)
		close(passed);
	if (asked.size && !memory)
		done.error = ENOMEM;
	else
		fd = do_job(server, &asked, memory, &done);
	if (memory)
		munmap(memory, asked.size);
	return packet_send(server->socket, (struct iovec[]){{&done, sizeof(done)}}, 1, fd);
}

void scribe_serve(int socket, const void *place)
{
	struct server server = {.socket = socket, .place = place, .sink = {.fd = -1}};

	privileges_of_files();
	if (!server.place->path) {
		server.sink =
			(struct sink){.fd = APART_KEPT, .begun = true, .regular = true, .most = ~0UL >> 1};
		server.opened = true;
	}
	while (serve_one(&server))
		;
}
