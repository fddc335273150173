// SPDX-License-Identifier: GPL-2.0-only
#include "collection/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "base/array.h"
#include "base/memory.h"

#define AREA_MOST  (4 << 20) /* as perf record's */
#define AREA_LEAST (64 << 10)
/* The kernel's notices, one for each piece of the trace. A piece is half of a buffer, or what a thread did
 * between two context switches. */
#define NOTICE_PAGES 16
/* If there is less room than this, the driver may have stopped without a notice: bts_buffer_reset() keeps a
 * margin (4080 bytes) and whole pieces. */
#define ROOM_LEAST 8192

struct buffer {
	int fd;
	struct perf_event_mmap_page *page; /* the notices follow it */
	char *area;
	size_t place;
	pid_t pid, tid; /* once the trace has begun */
	bool full;	/* the trace must be restarted */
};

struct trace {
	struct buffer *buffers;
	size_t nr;
	size_t page_size, area_size;
	int epoll;
	struct trace_loss loss;
};

/* --- mapping ---------------------------------------------------------------------------------- */

static size_t notices_size(const struct trace *trace)
{
	return NOTICE_PAGES * trace->page_size;
}

static void unmap(const struct trace *trace, struct buffer *buffer)
{
	if (buffer->area)
		munmap(buffer->area, trace->area_size);
	if (buffer->page)
		munmap(buffer->page, trace->page_size + notices_size(trace));
}

/* Both are mapped writable: otherwise the kernel would overwrite what has not been read. */
static int map_area(struct trace *trace, struct buffer *buffer)
{
	void *area;

	buffer->page->aux_offset = trace->page_size + notices_size(trace);
	buffer->page->aux_size = trace->area_size;
	area = mmap(NULL, trace->area_size, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd,
		    buffer->page->aux_offset);
	if (area == MAP_FAILED)
		return -errno;
	buffer->area = area;
	return 0;
}

static int map_buffer(struct trace *trace, struct buffer *buffer)
{
	void *page = mmap(NULL, trace->page_size + notices_size(trace), PROT_READ | PROT_WRITE, MAP_SHARED,
			  buffer->fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	buffer->page = page;
	return map_area(trace, buffer);
}

static int map_all(struct trace *trace)
{
	int err = 0;

	for (size_t i = 0; i < trace->nr && !err; i++)
		err = map_buffer(trace, &trace->buffers[i]);
	if (!err)
		return 0;
	for (size_t i = 0; i < trace->nr; i++) {
		unmap(trace, &trace->buffers[i]);
		trace->buffers[i].page = NULL;
		trace->buffers[i].area = NULL;
	}
	return err;
}

/* Edge-triggered, so that the end of a thread is reported only once. */
static int watch_all(struct trace *trace)
{
	struct epoll_event wanted = {.events = EPOLLIN | EPOLLET};

	trace->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; trace->epoll >= 0 && i < trace->nr; i++)
		if (epoll_ctl(trace->epoll, EPOLL_CTL_ADD, trace->buffers[i].fd, &wanted))
			return -errno;
	return trace->epoll < 0 ? -errno : 0;
}

int trace_open(struct trace **result, const struct counters *counters, size_t event)
{
	struct trace *trace = xcalloc(1, sizeof(*trace));
	int err;

	trace->page_size = sysconf(_SC_PAGESIZE);
	trace->nr = counters_places(counters)->nr;
	trace->buffers = xcalloc(trace->nr, sizeof(*trace->buffers));
	trace->epoll = -1;
	for (size_t i = 0; i < trace->nr; i++)
		trace->buffers[i] = (struct buffer){.fd = counters_fd(counters, event, i), .place = i};
	trace->area_size = AREA_MOST;
	err = map_all(trace);
	while ((err == -EPERM || err == -ENOMEM) && trace->area_size > AREA_LEAST) {
		trace->area_size /= 2;
		err = map_all(trace);
	}
	err = err ? err : watch_all(trace);
	if (err) {
		trace_close(trace);
		return err;
	}
	*result = trace;
	return 0;
}

void trace_close(struct trace *trace)
{
	if (!trace)
		return;
	for (size_t i = 0; i < trace->nr; i++)
		unmap(trace, &trace->buffers[i]);
	if (trace->epoll >= 0)
		close(trace->epoll);
	free(trace->buffers);
	free(trace);
}

int trace_descriptor(const struct trace *trace)
{
	return trace->epoll;
}

size_t trace_buffer_size(const struct trace *trace)
{
	return trace->area_size;
}

static __u64 head_of(const struct buffer *buffer)
{
	return __atomic_load_n(&buffer->page->aux_head, __ATOMIC_ACQUIRE);
}

__u64 trace_bytes(const struct trace *trace)
{
	__u64 bytes = 0;

	for (size_t i = 0; i < trace->nr; i++)
		bytes += head_of(&trace->buffers[i]);
	return bytes;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* perf_event_open(2). Other members of a notice are not requested. */
struct notice {
	struct perf_event_header header;
	union {
		struct {
			__u64 offset, size, flags;
		} piece; /* PERF_RECORD_AUX */
		struct {
			__u32 pid, tid;
		} start; /* PERF_RECORD_ITRACE_START */
		struct {
			__u64 id, lost;
		} lost; /* PERF_RECORD_LOST */
	};
};

#define INCOMPLETE (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION)

struct trace_reader {
	struct trace *trace;
	struct buffer *buffer;
	void (*take)(void *context, const struct traced *traced);
	void *context;
};

static void give_records(const struct trace_reader *reader, const struct trace_record *records, size_t nr)
{
	const struct buffer *buffer = reader->buffer;
	struct traced traced = {buffer->pid, buffer->tid, buffer->place, records, nr, NULL};

	reader->take(reader->context, &traced);
}

static void give_loss(const struct trace_reader *reader, const char *cause)
{
	const struct buffer *buffer = reader->buffer;
	struct traced traced = {buffer->pid, buffer->tid, buffer->place, NULL, 0, cause};

	reader->take(reader->context, &traced);
}

/* A piece lies in one stretch of memory, and begins with a whole record: bts_buffer_setup_aux(). Between two
 * pieces there is padding. */
static void take_piece(struct trace_reader *reader, const struct notice *notice)
{
	const struct trace *trace = reader->trace;
	size_t at = notice->piece.offset & (trace->area_size - 1);
	size_t nr = notice->piece.size / sizeof(struct trace_record);

	if (nr)
		give_records(reader, (const void *)(reader->buffer->area + at), nr);
	if (!(notice->piece.flags & INCOMPLETE))
		return;
	reader->trace->loss.buffer_full++;
	give_loss(reader, "buffer_full");
}

static void take_start(struct trace_reader *reader, const struct notice *notice)
{
	reader->buffer->pid = notice->start.pid;
	reader->buffer->tid = notice->start.tid;
}

static void take_lost(struct trace_reader *reader, const struct notice *notice)
{
	reader->trace->loss.notices_lost += notice->lost.lost;
	give_loss(reader, "notices_lost");
}

static const struct {
	__u32 type;
	void (*take)(struct trace_reader *reader, const struct notice *notice);
} kinds[] = {
	{PERF_RECORD_AUX, take_piece},
	{PERF_RECORD_ITRACE_START, take_start},
	{PERF_RECORD_LOST, take_lost},
};

static void take_notice(struct trace_reader *reader, const struct notice *notice)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].type == notice->header.type)
			kinds[i].take(reader, notice);
}

/* A notice may wrap around the ring's end. Sizes are multiples of 8, so a header never does. */
static size_t next_notice(const struct trace_reader *reader, __u64 at, struct notice *notice)
{
	const char *ring = (const char *)reader->buffer->page + reader->trace->page_size;
	size_t mask = notices_size(reader->trace) - 1;
	size_t size = ((const struct perf_event_header *)(ring + (at & mask)))->size;

	for (size_t i = 0; i < size && i < sizeof(*notice); i++)
		((char *)notice)[i] = ring[(at + i) & mask];
	return size;
}

static void read_buffer(struct trace_reader *reader)
{
	struct perf_event_mmap_page *page = reader->buffer->page;
	/* Read before the notices, so that everything before this head has its notice already. */
	__u64 head = head_of(reader->buffer);
	__u64 end = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail;
	__u64 full = reader->trace->loss.buffer_full;

	reader->buffer->full = head - page->aux_tail + ROOM_LEAST > reader->trace->area_size;
	while (at < end) {
		struct notice notice = {0};

		at += next_notice(reader, at, &notice);
		take_notice(reader, &notice);
		if (notice.header.type == PERF_RECORD_AUX && notice.piece.offset + notice.piece.size > head)
			head = notice.piece.offset + notice.piece.size;
	}
	if (reader->buffer->full && full == reader->trace->loss.buffer_full) {
		reader->trace->loss.buffer_full++;
		give_loss(reader, "buffer_full");
	}
	__atomic_store_n(&page->data_tail, end, __ATOMIC_RELEASE);
	__atomic_store_n(&page->aux_tail, head, __ATOMIC_RELEASE);
}

void trace_read(struct trace *trace, void (*take)(void *context, const struct traced *traced), void *context)
{
	struct epoll_event event;

	while (epoll_wait(trace->epoll, &event, 1, 0) > 0)
		;
	for (size_t i = 0; i < trace->nr; i++)
		read_buffer(&(struct trace_reader){trace, &trace->buffers[i], take, context});
}

/* Does nothing to an event that runs. An event that could not start because its buffer was full still counts
 * as enabled. Unless it is disabled first, it would be tried again only when its thread is scheduled next. */
void trace_resume(struct trace *trace)
{
	for (size_t i = 0; i < trace->nr; i++) {
		if (trace->buffers[i].full)
			ioctl(trace->buffers[i].fd, PERF_EVENT_IOC_DISABLE, 0);
		ioctl(trace->buffers[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	}
}

struct trace_loss trace_loss(const struct trace *trace)
{
	return trace->loss;
}
