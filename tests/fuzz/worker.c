// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the reader of a worker's answers, as a compromised worker could give them: any message,
 * any descriptor, any memory. No crash, no leak, consistent names and tables, and no signal to any
 * process. There is no worker process: its answers come from the input. See user/naming/worker.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "naming/named_source.h"
#include "unwind/table.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* --- the input ------------------------------------------------------------------------------------ */

static const unsigned char *at;
static size_t left;

/* Fills with zeroes when the input is used up. */
static void take(void *bytes, size_t size)
{
	size_t taken = size < left ? size : left;

	memset(bytes, 0, size);
	if (taken)
		memcpy(bytes, at, taken);
	at += taken;
	left -= taken;
}

static __u8 take_byte(void)
{
	__u8 byte;

	take(&byte, sizeof(byte));
	return byte;
}

static __u16 take_short(void)
{
	__u16 number;

	take(&number, sizeof(number));
	return number;
}

/* --- in place of the process ------------------------------------------------------------------ */

/* The fuzzer is linked so that these are called instead: see fuzz.mk. */
int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment);
long __wrap_syscall(long number, ...);
bool __wrap_packet_send(int socket, struct iovec *parts, size_t nr, int fd);
size_t __wrap_packet_receive(int socket, void *bytes, size_t most, int *fd);
int __wrap_place_open_debug(const struct file_place *place, bool ours, const char *path, uid_t owner,
			    const char *debug_dir);

int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment)
{
	*pid = getpid();
	return 0;
}

/* A pidfd is some other descriptor, and system calls on it have no effect. */
long __wrap_syscall(long number, ...)
{
	if (number == SYS_pidfd_open)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (number != SYS_pidfd_send_signal && number != SYS_waitid)
		abort();
	return 0;
}

bool __wrap_packet_send(int socket, struct iovec *parts, size_t nr, int fd)
{
	return take_byte() < 250;
}

int __wrap_place_open_debug(const struct file_place *place, bool ours, const char *path, uid_t owner,
			    const char *debug_dir)
{
	return strlen(path) % 2 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

/* Memory, mostly valid. */
static int take_memory(void)
{
	__u8 kind = take_byte();
	size_t size = take_short();
	char bytes[1 << 16];
	int fd;

	if (kind > 250)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	take(bytes, size);
	fd = memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (kind == 250)
		ftruncate(fd, size << kind % 32);
	else if (write(fd, bytes, size) != (ssize_t)size)
		abort();
	if (kind < 240)
		fcntl(fd, F_ADD_SEALS, SEALS);
	return fd;
}

enum broken {
	RAW_WHY = 1,
	RAW_COUNTS = 2,
	RAW_SIZE = 4,
	NO_END = 8,
	NO_DESCRIPTOR = 16,
};

/* An answer, mostly well-formed; `broken` says which parts are arbitrary. */
size_t __wrap_packet_receive(int socket, void *bytes, size_t most, int *fd)
{
	struct answer *answer = bytes;
	__u8 broken = take_byte(), begin = take_byte();
	size_t size;

	*fd = broken & NO_DESCRIPTOR ? take_byte() % 2 ? FD_CUT : -1 : take_memory();
	if (begin == 255) { /* any bytes at all */
		size = take_short();
		take(bytes, size);
		return size;
	}
	*answer = (struct answer){.kind = begin < 160 ? ANSWER_DONE : begin < 240 ? ANSWER_OPEN : begin};
	answer->ours = take_byte() % 2;
	answer->kept = take_byte() % 2;
	answer->nr_frames = take_byte() % (FRAMES_MAX + 2);
	answer->nr_text = take_short() % 4096;
	answer->kept_bytes = take_short();
	answer->indexed = begin % 2;
	answer->symbol = begin % 3 ? begin : -1U;
	for (int i = 0; i < 4; i++)
		if (broken & RAW_COUNTS)
			take(&answer->counts[i], sizeof(answer->counts[i]));
		else
			answer->counts[i] = take_byte();
	take(&answer->base, sizeof(answer->base));
	if (broken & RAW_WHY) {
		take(answer->why, sizeof(answer->why));
		take(answer->build_id, sizeof(answer->build_id));
	} else {
		memset(answer->build_id, '0' + begin % 10, begin % sizeof(answer->build_id));
	}
	size = answer->nr_frames * sizeof(struct told_frame) + answer->nr_text;
	if (broken & RAW_SIZE)
		size = take_short() % (most - sizeof(*answer));
	take(answer + 1, size);
	if (!(broken & NO_END) && size)
		((char *)(answer + 1))[size - 1] = '\0';
	return sizeof(*answer) + size;
}

/* The memory a worker may use. Symbols and lines may each be that large; BESIDES is for the rest.
 * */
#define MEMORY	(64UL << 20)
#define BESIDES (1UL << 20)

/* --- the questions ---------------------------------------------------------------------------- */

static void check_text(const char *text, size_t most)
{
	if (text && strlen(text) > most)
		abort();
}

static void check_name(const struct name *name)
{
	if (!name->nr == !name->why)
		abort();
	check_text(name->build_id, 2 * BUILD_ID_MAX);
	check_text(name->why, WHY_MOST);
	for (size_t i = 0; i < name->nr; i++) {
		check_text(name->frames[i].symbol, NAMING_SYMBOL_MAX);
		check_text(name->frames[i].file, MESSAGE_MOST);
	}
}

static void ask_names(struct named_source *source, bool map)
{
	static const struct file_place place = {.path = "[vdso]"};
	static const struct naming_settings settings = {
		.lines = true, .memory = 1 << 20, .debug_dir = "/nonexistent"};

	if (map)
		source_load_map(source, -1, 1 << 20, true, false);
	else if (source_open(source, &place))
		source_load(source, &place, &settings, settings.memory);
	for (int i = 0; i < 4; i++)
		check_name(source_name_at(source, take_short()));
	if (source_bytes(source) > 2 * MEMORY + BESIDES)
		abort();
	source_empty(source);
}

static void ask_table(struct worker *worker)
{
	struct sealed sealed = {0};
	struct question_of_worker question = {.ask = {.kind = ASK_TABLE}, .fd = -1, .sealed = &sealed};
	const struct answer *answer = worker_ask(worker, &question);
	struct unwind_table table;

	if (answer && sealed.memory &&
	    unwind_table_of_memory(&table, answer->base, answer->counts, sealed.memory, sealed.size))
		for (size_t i = 0; i < 64; i++)
			unwind_table_at(&table, answer->base + i * 1000);
	sealed_release(&sealed);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct worker *worker = worker_new(MEMORY);
	struct named_source source = {.worker = worker};

	at = data;
	left = size;
	switch (take_byte() % 3) {
	case 0:
		ask_table(worker);
		break;
	case 1:
		ask_names(&source, true);
		break;
	default:
		ask_names(&source, false);
	}
	worker_release(worker);
	return 0;
}
