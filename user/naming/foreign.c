// SPDX-License-Identifier: GPL-2.0-only
#include "naming/foreign.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/local.h"
#include "base/memory.h"
#include "base/packet.h"
#include "host/processes.h"

#define HELPER_NAME "nhmtap-files"

#define TEXT_MOST (2 * (64 + PATH_MAX))

/* What is sent to a helper. A helper has the same program, so the layouts agree. */
struct open_request {
	enum foreign_want want;
	__u64 resolve;
	struct guard guard;
	__u64 from, size;
	bool has_folder;
	int number;	      /* of the descriptor N in "/proc/self/fd/N", which is sent too; -1: none */
	char text[TEXT_MOST]; /* the folder, then the path */
};

struct told {
	bool done; /* otherwise it is still copying the file */
	bool local;
	int error;
	struct stat stat;
	char build_id[FOREIGN_BUILD_ID];
	char path[PATH_MAX];
};

/* --- in a helper ---------------------------------------------------------------------------------- */

/* Finds GNU's build-id among the notes of a segment: elf(5). */
static bool find_build_id(const char *notes, size_t size, char text[FOREIGN_BUILD_ID])
{
	const size_t most = (FOREIGN_BUILD_ID - 1) / 2;

	for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= size;) {
		Elf64_Nhdr note;
		size_t name = at + sizeof(note), id, end;

		memcpy(&note, notes + at, sizeof(note));
		id = name + ((size_t)note.n_namesz + 3) / 4 * 4;
		end = id + ((size_t)note.n_descsz + 3) / 4 * 4;
		if (id > size || end > size)
			return false;
		at = end;
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
		    memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			continue;
		hex_text(text, (const __u8 *)notes + id, note.n_descsz < most ? note.n_descsz : most);
		return note.n_descsz;
	}
	return false;
}

#define NOTES_MOST    4096
#define SEGMENTS_MOST 64

/* What is read of a file's header and of a segment, for both classes of files. */
union file_header {
	unsigned char ident[EI_NIDENT];
	Elf32_Ehdr narrow;
	Elf64_Ehdr wide;
};

union segment {
	Elf32_Phdr narrow;
	Elf64_Phdr wide;
};

/* Reads where a segment is in the file. `size` is 0 if it has no notes. */
static bool read_segment(int fd, const union file_header *header, int i, __u64 *offset, size_t *size)
{
	bool wide = header->ident[EI_CLASS] == ELFCLASS64;
	ssize_t each = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	union segment segment;

	if (pread(fd, &segment, each, (wide ? header->wide.e_phoff : header->narrow.e_phoff) + i * each) !=
	    each)
		return false;
	*offset = wide ? segment.wide.p_offset : segment.narrow.p_offset;
	*size = (wide ? segment.wide.p_type : segment.narrow.p_type) != PT_NOTE ? 0
		: wide								? segment.wide.p_filesz
										: segment.narrow.p_filesz;
	return true;
}

static void read_build_id(int fd, char text[FOREIGN_BUILD_ID])
{
	union file_header header = {{0}};
	char notes[NOTES_MOST];
	__u64 offset;
	size_t size;
	int nr;

	text[0] = '\0';
	if (pread(fd, &header, sizeof(header), 0) < (ssize_t)sizeof(header.narrow) ||
	    memcmp(header.ident, ELFMAG, SELFMAG))
		return;
	nr = header.ident[EI_CLASS] == ELFCLASS64   ? header.wide.e_phnum
	     : header.ident[EI_CLASS] == ELFCLASS32 ? header.narrow.e_phnum
						    : 0;
	for (int i = 0; i < nr && i < SEGMENTS_MOST && read_segment(fd, &header, i, &offset, &size); i++) {
		size = size < sizeof(notes) ? size : sizeof(notes);
		if (size && pread(fd, notes, size, offset) == (ssize_t)size &&
		    find_build_id(notes, size, text))
			return;
		text[0] = '\0';
	}
}

static void tell_result(int socket, const struct told *told, int fd)
{
	if (!packet_send(socket, (struct iovec[]){{(void *)told, sizeof(*told)}}, 1, fd))
		_exit(0);
}

#define COPIED_MOST (256ULL << 20)
#define PIECE	    (1UL << 20)

/* Copies what was asked for of a file to memory. Tells after each piece that it is still at work. Returns the
 * descriptor of the copy, or -1 with errno. */
static int copy_file(int socket, const struct open_request *asked, int from)
{
	static char piece[PIECE];
	int to = memfd_create(HELPER_NAME, MFD_CLOEXEC), error = 0;
	__u64 size = asked->size ? asked->size : ~0ULL;
	off_t at = 0;
	ssize_t got;

	while (to >= 0 && !error &&
	       (got = pread(from, piece, size - at < sizeof(piece) ? size - at : sizeof(piece),
			    asked->from + at))) {
		if (got < 0 || (__u64)(at + got) > COPIED_MOST)
			error = got < 0 ? errno : EFBIG;
		else if (pwrite(to, piece, got, at) != got) /* who reads it begins at its start */
			error = ENOSPC;
		at += got;
		tell_result(socket, &(struct told){.done = false}, -1);
	}
	if (!error)
		return to;
	close(to);
	errno = error;
	return -1;
}

/* Replaces the number of the caller's descriptor in "/proc/self/fd/N" by that of the helper's. */
static const char *own(const struct open_request *asked, const char *path, int fd, char text[TEXT_MOST])
{
	int number, at = 0;

	if (fd < 0 || sscanf(path, "/proc/self/fd/%d%n", &number, &at) != 1 || number != asked->number)
		return path;
	snprintf(text, TEXT_MOST, "/proc/self/fd/%d%.*s", fd, TEXT_MOST - 64, path + at);
	return text;
}

/* The process whose root, or whose mapping, a path begins with; 0: none. */
static pid_t process_of(const char *path)
{
	int pid;

	return sscanf(path, "/proc/%d/", &pid) == 1 ? pid : 0;
}

/* Returns the descriptor to be sent; -1 with told->error on failure. */
static int handle_found(int socket, const struct open_request *asked, struct told *told, int found)
{
	char link[64];
	ssize_t length;
	int fd, copied, error;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
	length = readlink(link, told->path, sizeof(told->path) - 1);
	told->path[length > 0 ? length : 0] = '\0';
	if (fstat(found, &told->stat))
		return -1;
	fd = guarded_open_found(found);
	if (fd < 0)
		return -1;
	told->local = asked->want != FOREIGN_COPY && local_is(fd, process_of(asked->text));
	if (asked->want == FOREIGN_HOLD)
		read_build_id(fd, told->build_id);
	if (told->local)
		return fd;
	copied =
		asked->want == FOREIGN_HOLD ? fcntl(found, F_DUPFD_CLOEXEC, 0) : copy_file(socket, asked, fd);
	error = errno;
	close(fd); /* may wait for the server, too: fuse_flush() */
	errno = error;
	return copied;
}

static void answer_request(int socket, const struct open_request *asked, int passed)
{
	char folder_text[TEXT_MOST], path_text[TEXT_MOST];
	const char *path = asked->text + (asked->has_folder ? strlen(asked->text) + 1 : 0);
	struct told told = {.done = true};
	int folder = AT_FDCWD, found = -1, fd = -1;

	path = own(asked, path, passed, path_text);
	errno = 0;
	if (asked->has_folder)
		folder = open(own(asked, asked->text, passed, folder_text), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (asked->has_folder && folder < 0) {
		told.error = errno;
	} else if (asked->want == FOREIGN_STAT) {
		told.error = fstatat(folder, path, &told.stat, 0) ? errno : 0;
	} else {
		found = guarded_find(folder, path, asked->resolve, &asked->guard);
		if (found >= 0)
			fd = handle_found(socket, asked, &told, found);
		told.error = fd < 0 ? errno : 0;
	}
	tell_result(socket, &told, fd);
	apart_close_opened();
}

static void serve(int socket, const void *unused __attribute__((unused)))
{
	static struct open_request asked;
	int passed;

	while (packet_receive(socket, &asked, sizeof(asked), &passed) == sizeof(asked))
		answer_request(socket, &asked, passed);
}

/* --- helpers -------------------------------------------------------------------------------------- */

struct helper {
	struct helper *next;
	struct apart process;
	enum { IDLE, BUSY, STUCK } state;
	/* What it is stuck on: */
	dev_t device;
	char *folder;
};

static struct {
	pthread_mutex_t lock;
	struct helper *first;
	size_t nr;
} helpers = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define HELPERS_MOST 64

/* Called with the lock. */
static void forget_helper(struct helper *helper)
{
	struct helper **at = &helpers.first;

	while (*at != helper)
		at = &(*at)->next;
	*at = helper->next;
	helpers.nr--;
	apart_leave(&helper->process);
	free(helper->folder);
	free(helper);
}

/* Called with the lock. */
static struct helper *start_helper(void)
{
	struct helper *helper = xcalloc(1, sizeof(*helper));

	if (helpers.nr == HELPERS_MOST || !apart_start(&helper->process, HELPER_NAME, serve, NULL, -1)) {
		free(helper);
		return NULL;
	}
	helper->next = helpers.first;
	helpers.first = helper;
	helpers.nr++;
	return helper;
}

/* CLOCK_MONOTONIC, ns; 0: there is no hurry. */
static __u64 hurried_until;

void foreign_hurry(bool hurry)
{
	__u64 until = hurry ? clock_ns(CLOCK_MONOTONIC) + FOREIGN_SOON_MS * 1000000ULL : 0;

	__atomic_store_n(&hurried_until, until, __ATOMIC_RELAXED);
}

/* How long to wait before looking whether there is a hurry now. */
#define SLICE_NS 50000000

static int slice_ms(__u64 ns)
{
	return ((ns < SLICE_NS ? ns : SLICE_NS) + 999999) / 1000000;
}

/* Whether a helper waits for nothing but a CPU, of which a busy machine may have none for long. */
static bool is_runnable(const struct helper *helper)
{
	char state[32];

	return proc_status(helper->process.pid, "State:", state, sizeof(state)) && strchr(state, 'R');
}

/* Waits for a message of a helper, until the deadline or for longer while the helper is only short of CPU
 * time. Returns 0, ETIMEDOUT, or ECHILD if it has ended. */
static int receive_told(struct helper *helper, struct told *told, int *fd, __u64 deadline)
{
	struct pollfd ready = {.fd = helper->process.socket, .events = POLLIN};

	*fd = -1;
	for (;;) {
		__u64 now = clock_ns(CLOCK_MONOTONIC),
		      hurried = __atomic_load_n(&hurried_until, __ATOMIC_RELAXED);
		int got;

		if (hurried && hurried < deadline)
			deadline = hurried > now ? hurried : now;
		got = poll(&ready, 1, now < deadline ? slice_ms(deadline - now) : 0);

		if (got > 0)
			break;
		if (got < 0 && errno != EINTR)
			return ETIMEDOUT;
		if (now >= deadline) {
			if (!deadline || (hurried && hurried <= now) || !is_runnable(helper))
				return ETIMEDOUT;
			deadline = now + SLICE_NS;
		}
	}
	return packet_receive(helper->process.socket, told, sizeof(*told), fd) == sizeof(*told) ? 0 : ECHILD;
}

/* Called with the lock. Takes the late answers of helpers that were stuck, and forgets those that have ended.
 */
static void look_after_stuck(void)
{
	static struct told told;
	struct helper *next;
	int fd, err = 0;

	for (struct helper *helper = helpers.first; helper; helper = next) {
		next = helper->next;
		if (helper->state != STUCK)
			continue;
		do {
			told.done = false;
			err = receive_told(helper, &told, &fd, 0);
			if (fd >= 0)
				close(fd);
		} while (!err && !told.done);
		if (!err)
			helper->state = IDLE;
		else if (err == ECHILD)
			forget_helper(helper);
	}
}

static bool is_within(const char *folder, const char *path)
{
	size_t length = strlen(folder);

	return !strncmp(path, folder, length) && (!path[length] || path[length] == '/');
}

/* The folder that a question is about, without the name of the file. */
static void folder_of(const struct foreign_question *question, char text[TEXT_MOST])
{
	char *slash;

	snprintf(text, TEXT_MOST, "%s%s", question->folder ? question->folder : "", question->path);
	slash = strrchr(text, '/');
	/* Descriptors and mapped files are on other file systems than their folders in /proc. */
	if (slash && slash > text && (strncmp(text, "/proc/", 6) || strstr(text, "/root/")))
		*slash = '\0';
}

/* Called with the lock. */
static bool is_stuck(const struct foreign_question *question)
{
	char text[TEXT_MOST];

	folder_of(question, text);
	for (const struct helper *helper = helpers.first; helper; helper = helper->next)
		if (helper->state == STUCK && ((question->device && question->device == helper->device) ||
					       is_within(helper->folder, text)))
			return true;
	return false;
}

bool foreign_is_stuck(dev_t device)
{
	bool stuck = false;

	if (!device)
		return false;
	pthread_mutex_lock(&helpers.lock);
	look_after_stuck();
	for (const struct helper *helper = helpers.first; helper; helper = helper->next)
		stuck |= helper->state == STUCK && device == helper->device;
	pthread_mutex_unlock(&helpers.lock);
	return stuck;
}

bool foreign_is_stuck_in_proc(const char *name)
{
	bool stuck = false;

	pthread_mutex_lock(&helpers.lock);
	look_after_stuck();
	for (const struct helper *helper = helpers.first; helper; helper = helper->next)
		stuck |= helper->state == STUCK && is_within("/proc", helper->folder) &&
			 !strcmp(strrchr(helper->folder, '/') + 1, name);
	pthread_mutex_unlock(&helpers.lock);
	return stuck;
}

/* Returns a helper for the question, or NULL with an error. */
static struct helper *take_helper(const struct foreign_question *question, int *error)
{
	struct helper *helper;

	pthread_mutex_lock(&helpers.lock);
	look_after_stuck();
	helper = helpers.first;
	while (helper && helper->state != IDLE)
		helper = helper->next;
	*error = is_stuck(question) ? ETIMEDOUT : ECHILD;
	if (*error == ETIMEDOUT)
		helper = NULL;
	else if (!helper)
		helper = start_helper();
	if (helper)
		helper->state = BUSY;
	pthread_mutex_unlock(&helpers.lock);
	return helper;
}

static void give_back(struct helper *helper, const struct foreign_question *question, int error)
{
	char text[TEXT_MOST];

	pthread_mutex_lock(&helpers.lock);
	helper->state = IDLE;
	if (error == ETIMEDOUT) {
		folder_of(question, text);
		free(helper->folder);
		helper->folder = xstrdup(text);
		helper->device = question->device;
		helper->state = STUCK;
	} else if (error) {
		forget_helper(helper);
	}
	pthread_mutex_unlock(&helpers.lock);
}

/* The number N if the path begins with /proc/self/fd/N; -1 otherwise. */
static int number_in(const char *path)
{
	int number = -1;

	return path && sscanf(path, "/proc/self/fd/%d", &number) == 1 ? number : -1;
}

#define MAIN_MS 1000

/* The main thread, which must obey SIGTERM, waits for a shorter time. */
static unsigned int may_wait_ms(void)
{
	return gettid() == getpid() ? MAIN_MS : ~0U;
}

/* Sends the question and waits for the answer. Returns 0, ETIMEDOUT, or ECHILD. */
static int converse_with(struct helper *helper, const struct foreign_question *question, struct told *told,
			 int *fd)
{
	const char *folder = question->folder;
	struct open_request *asked = xcalloc(1, sizeof(*asked));
	unsigned int wait_ms = question->wait_ms < may_wait_ms() ? question->wait_ms : may_wait_ms();
	size_t length = 0;
	int number = number_in(folder) >= 0 ? number_in(folder) : number_in(question->path), err;

	asked->want = question->want;
	asked->resolve = question->resolve;
	asked->guard = question->guard;
	asked->from = question->from;
	asked->size = question->size;
	asked->has_folder = folder;
	asked->number = number;
	if (folder)
		length = snprintf(asked->text, sizeof(asked->text) / 2, "%s", folder) + 1;
	snprintf(asked->text + length, sizeof(asked->text) - length, "%s", question->path);
	err = packet_send(helper->process.socket, (struct iovec[]){{asked, sizeof(*asked)}}, 1, number)
		      ? 0
		      : ECHILD;
	free(asked);
	told->done = false;
	while (!err && !told->done)
		err = receive_told(helper, told, fd, clock_ns(CLOCK_MONOTONIC) + wait_ms * 1000000ULL);
	return err;
}

int foreign_ask(const struct foreign_question *question, struct foreign_answer *answer)
{
	struct helper *helper;
	struct told told;
	int err;

	answer->fd = -1;
	/* A helper may have been killed since its last answer. */
	for (int tries = 0; tries < 2; tries++) {
		helper = take_helper(question, &err);
		if (!helper)
			return err;
		err = converse_with(helper, question, &told, &answer->fd);
		give_back(helper, question, err);
		if (err != ECHILD)
			break;
	}
	if (err)
		return err;
	if (told.error)
		return told.error;
	if (question->want != FOREIGN_STAT && answer->fd < 0)
		return EMFILE;
	answer->local = told.local;
	answer->stat = told.stat;
	memcpy(answer->build_id, told.build_id, sizeof(answer->build_id));
	memcpy(answer->path, told.path, sizeof(answer->path));
	return 0;
}

int foreign_open_as(const struct foreign_question *question, struct stat *stat)
{
	struct foreign_answer *answer = xmalloc(sizeof(*answer));
	int err = foreign_ask(question, answer), fd = err ? -1 : answer->fd;

	if (!err && stat)
		*stat = answer->stat;
	free(answer);
	errno = err;
	return fd;
}

int foreign_open(const char *path, unsigned int wait_ms, struct stat *stat)
{
	return foreign_open_as(
		&(struct foreign_question){.want = FOREIGN_READ,
					   .path = path,
					   .guard = {.whose = GUARD_ANYBODY, .most = GUARD_IMAGE_MOST},
					   .wait_ms = wait_ms},
		stat);
}

/* --- what is known -------------------------------------------------------------------------------- */

static bool known(int folder, const char *path, int flags, struct stat *stat)
{
	struct statx known;

	if (statx(folder, path, flags | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &known))
		return false;
	*stat = (struct stat){.st_dev = makedev(known.stx_dev_major, known.stx_dev_minor),
			      .st_ino = known.stx_ino,
			      .st_mode = known.stx_mode,
			      .st_uid = known.stx_uid,
			      .st_size = known.stx_size,
			      .st_mtim = {known.stx_mtime.tv_sec, known.stx_mtime.tv_nsec}};
	return true;
}

bool foreign_known(int fd, struct stat *stat)
{
	return known(fd, "", AT_EMPTY_PATH, stat);
}

bool foreign_known_link(const char *path, struct stat *stat)
{
	return known(AT_FDCWD, path, 0, stat);
}

/* Looks in the kernel's cache only. */
static bool look_in_cache(const char *path, struct stat *stat)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED};
	int number, end = 0, fd;
	bool found;

	if (sscanf(path, "/proc/self/fd/%d%n", &number, &end) == 1 && end && !path[end])
		return foreign_known(number, stat);
	fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	found = fd >= 0 && foreign_known(fd, stat);
	if (fd >= 0)
		close(fd);
	return found;
}

bool foreign_stat(const char *path, dev_t device, unsigned int wait_ms, struct stat *stat)
{
	struct foreign_answer *answer;
	int err;

	if (look_in_cache(path, stat))
		return true;
	answer = xmalloc(sizeof(*answer));
	err = foreign_ask(
		&(struct foreign_question){
			.want = FOREIGN_STAT, .path = path, .device = device, .wait_ms = wait_ms},
		answer);
	if (!err)
		*stat = answer->stat;
	free(answer);
	errno = err;
	return !err;
}
