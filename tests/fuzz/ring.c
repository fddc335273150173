// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the reader of the kernel's notes and the mappings that are made from them: the input
 * replaces the content of perf's ring. As in notes of the kernel, all fields of a note's type are
 * there, the time follows them, and texts are terminated. All else comes from the input: lengths,
 * paths, names, build-ids, notes longer than libperf hands over.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <perf/event.h>
#include <perf/mmap.h>

#include "collection/sideband.h"
#include "naming/ksymbols.h"
#include "naming/mappings.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
union perf_event *__wrap_perf_mmap__read_event(struct perf_mmap *map);
void __wrap_perf_mmap__consume(struct perf_mmap *map);

static struct sideband *sideband;
static const unsigned char *input, *input_end;
static __u64 *note; /* read and not yet consumed */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct target none = {0};
	struct host host = {0};
	struct refusal refusal = {0};

	cpus_add(&host.online, 0);
	if (sideband_open(&sideband, &none, getpid(), true, &host, &refusal))
		abort();
	return 0;
}

static unsigned int next_byte(void)
{
	return input < input_end ? *input++ : 0;
}

/* The size of a note without its text, and whether it has one. */
static const struct kind {
	__u32 type;
	size_t size;
	bool text;
} kinds[] = {
	{PERF_RECORD_MMAP2, offsetof(struct perf_record_mmap2, filename), true},
	{PERF_RECORD_COMM, offsetof(struct perf_record_comm, comm), true},
	{PERF_RECORD_CGROUP, offsetof(struct perf_record_cgroup, path), true},
	{PERF_RECORD_KSYMBOL, offsetof(struct perf_record_ksymbol, name), true},
	{PERF_RECORD_FORK, sizeof(struct perf_record_fork), false},
	{PERF_RECORD_EXIT, sizeof(struct perf_record_fork), false},
	{PERF_RECORD_LOST, sizeof(struct perf_record_lost), false},
	{PERF_RECORD_THROTTLE, sizeof(struct perf_event_header) + 3 * sizeof(__u64), false},
};

/* No process has such a pid, so nothing is looked up in /proc. */
static void set_pid(__u32 *pid)
{
	*pid = *pid & 0x80 ? 0 : 0x7f000000 + *pid % 7;
}

/* The next note of the input, in memory of exactly the size that its header says. */
static __u64 *make_note(void)
{
	static unsigned char fixed[128], text[PATH_MAX];
	const struct kind *kind = &kinds[next_byte() % (sizeof(kinds) / sizeof(kinds[0]))];
	unsigned int misc = next_byte(), length = kind->text ? next_byte() * 17 : 0;
	struct perf_event_header *header = (struct perf_event_header *)fixed;
	size_t text_size;
	__u64 time, *made;

	for (size_t i = sizeof(*header); i < kind->size; i++)
		fixed[i] = next_byte();
	length = length < sizeof(text) ? length : sizeof(text) - 1;
	text_size = kind->text ? (length / sizeof(__u64) + 1) * sizeof(__u64) : 0;
	memset(text, 0, text_size);
	for (size_t i = 0; i < length; i++)
		text[i] = next_byte();
	time = next_byte();
	*header = (struct perf_event_header){
		.type = kind->type, .misc = misc << 8, .size = kind->size + text_size + sizeof(time)};
	if (kind->type != PERF_RECORD_CGROUP && kind->type != PERF_RECORD_KSYMBOL &&
	    kind->type != PERF_RECORD_LOST) {
		set_pid((__u32 *)(fixed + sizeof(*header)));
		set_pid((__u32 *)(fixed + sizeof(*header)) + 1);
	}
	made = malloc(header->size);
	memcpy(made, fixed, kind->size);
	memcpy((char *)made + kind->size, text, text_size);
	memcpy((char *)made + kind->size + text_size, &time, sizeof(time));
	return made;
}

union perf_event *__wrap_perf_mmap__read_event(struct perf_mmap *map)
{
	if (input < input_end && !note)
		note = make_note();
	return (union perf_event *)note;
}

void __wrap_perf_mmap__consume(struct perf_mmap *map)
{
	free(note);
	note = NULL;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct mappings *mappings = mappings_new();
	struct ksymbols ksymbols = {0};
	struct sideband_note told;
	bool ambiguous;

	input = data;
	input_end = data + size;
	while (sideband_next(sideband, ~0ULL, &told)) {
		if (told.build_id_size > MAPPED_BUILD_ID_MAX || (told.kind == SIDEBAND_MAPPED && !told.path))
			abort();
		if (told.kind == SIDEBAND_KSYMBOL) {
			ksymbols_take(&ksymbols, &told);
			ksymbols_find(&ksymbols, told.begin, told.time, &ambiguous);
		}
		if (told.kind >= SIDEBAND_CGROUP)
			continue; /* of no process */
		mappings_take(mappings, &told);
		mappings_find(mappings, told.pid, told.comm, told.begin, told.time);
	}
	mappings_release(mappings);
	ksymbols_release(&ksymbols);
	return 0;
}
