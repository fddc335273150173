// SPDX-License-Identifier: GPL-2.0-only
#include "collection/exec_watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include "base/memory.h"

/* Room for some 300 notes. The kernel drops what comes later, which are no longer those of the first exec. */
#define RING_PAGES 8

struct exec_watch {
	int fd;
	struct perf_event_mmap_page *ring;
	__u64 read; /* bytes of the ring's data */
	bool began; /* since an exec, no program was mapped */
	bool cut;
	__u64 exec_ns; /* CLOCK_MONOTONIC: the first exec; 0: none yet */
};

static size_t ring_bytes(void)
{
	return (1 + RING_PAGES) * sysconf(_SC_PAGESIZE);
}

struct exec_watch *exec_watch_open(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1, /* it counts nothing; without the kernel it needs less permission */
		.exclude_hv = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1, /* appends the time to every note */
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.comm = 1,
		.comm_exec = 1,
		.mmap = 1,
		.task = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct exec_watch *watch;
	void *ring;

	if (fd < 0)
		return NULL;
	ring = mmap(NULL, ring_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	watch = xcalloc(1, sizeof(*watch));
	watch->fd = fd;
	watch->ring = ring;
	return watch;
}

void exec_watch_close(struct exec_watch *watch)
{
	if (!watch)
		return;
	munmap(watch->ring, ring_bytes());
	close(watch->fd);
	free(watch);
}

/* Copies bytes of the ring, which a note may reach the end of. */
static void copy_from_ring(const struct exec_watch *watch, __u64 from, void *to, size_t size)
{
	size_t all = RING_PAGES * sysconf(_SC_PAGESIZE), at = from % all,
	       first = size < all - at ? size : all - at;
	const char *data = (const char *)watch->ring + sysconf(_SC_PAGESIZE);

	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, size - first);
}

static void begin_exec(struct exec_watch *watch, const struct perf_event_header *header)
{
	watch->began = true;
	if (!watch->exec_ns)
		copy_from_ring(watch, watch->read + header->size - sizeof(watch->exec_ns), &watch->exec_ns,
			       sizeof(watch->exec_ns));
}

static void take_note(struct exec_watch *watch, const struct perf_event_header *header)
{
	switch (header->type) {
	case PERF_RECORD_COMM:
		if (header->misc & PERF_RECORD_MISC_COMM_EXEC)
			begin_exec(watch, header);
		return;
	case PERF_RECORD_MMAP:
		watch->began = false;
		return;
	case PERF_RECORD_EXIT:
		watch->cut = watch->cut || watch->began;
		return;
	default:
		return;
	}
}

static void take_all(struct exec_watch *watch)
{
	__u64 head = __atomic_load_n(&watch->ring->data_head, __ATOMIC_ACQUIRE);

	while (watch->read < head) {
		struct perf_event_header header;

		copy_from_ring(watch, watch->read, &header, sizeof(header));
		take_note(watch, &header);
		watch->read += header.size;
	}
	__atomic_store_n(&watch->ring->data_tail, watch->read, __ATOMIC_RELEASE);
}

bool exec_watch_cut(struct exec_watch *watch)
{
	take_all(watch);
	return watch->cut;
}

__u64 exec_watch_time_ns(struct exec_watch *watch)
{
	take_all(watch);
	return watch->exec_ns;
}
