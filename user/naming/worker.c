// SPDX-License-Identifier: GPL-2.0-only
#include "naming/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/readable.h"
#include "base/reports.h"
#include "host/processes.h"

struct worker {
	struct worker *next; /* list of all workers */
	size_t memory;	     /* see worker_new() */
	bool disassembles;
	int process; /* its pidfd: a session reaps any child, so its pid may be reused; -1: not running */
	pid_t pid;
	int fd;
	__u64 cpu_ns;	   /* as last seen */
	__u64 since;	   /* CLOCK_MONOTONIC, ns: since when `ends` are counted */
	unsigned int ends; /* number of ends since then */
	__u32 generation;
	const char *why; /* see worker_why() */
	bool never;	 /* it can't be confined, so no other is started */
	bool trusted;	 /* it has not yet read any file */
	size_t size;	 /* size of the answer */
	union {
		struct answer answer;
		char bytes[MESSAGE_MOST];
	} got;
};

/* All workers, and the CPU time of those that have ended. */
static struct {
	pthread_mutex_t lock;
	struct worker *first;
	__u64 ended_ns;
} workers = {.lock = PTHREAD_MUTEX_INITIALIZER};

void worker_disassembles(struct worker *worker)
{
	worker->disassembles = true;
}

struct worker *worker_new(size_t memory)
{
	struct worker *worker = xcalloc(1, sizeof(*worker));

	worker->fd = worker->process = -1;
	worker->memory = memory;
	pthread_mutex_lock(&workers.lock);
	worker->next = workers.first;
	workers.first = worker;
	pthread_mutex_unlock(&workers.lock);
	return worker;
}

const char *worker_why(const struct worker *worker)
{
	return worker->why;
}

__u32 worker_generation(const struct worker *worker)
{
	return worker->generation;
}

/* --- its life --------------------------------------------------------------------------------- */

/* The CPU time of a worker. If its process was already waited for, its clock is gone, so the last value is
 * returned. */
static __u64 cpu_ns(struct worker *worker)
{
	clockid_t clock;
	__u64 now = clock_getcpuclockid(worker->pid, &clock) ? 0 : clock_ns(clock);

	if (now > worker->cpu_ns)
		worker->cpu_ns = now;
	return worker->cpu_ns;
}

__u64 workers_cpu_ns(void)
{
	__u64 sum;

	pthread_mutex_lock(&workers.lock);
	sum = workers.ended_ns;
	for (struct worker *worker = workers.first; worker; worker = worker->next)
		sum += worker->process < 0 ? 0 : cpu_ns(worker);
	pthread_mutex_unlock(&workers.lock);
	return sum;
}

static __u64 time_ns(const struct timeval *time)
{
	return time->tv_sec * 1000000000ULL + time->tv_usec * 1000ULL;
}

#define DEATH_NS 1000000000ULL

static void stop(struct worker *worker)
{
	struct rusage usage = {0};

	if (worker->process < 0)
		return;
	close(worker->fd); /* this ends the worker too, unless it is busy */
	syscall(SYS_pidfd_send_signal, worker->process, SIGKILL, NULL, 0);
	/* A debugger that is attached to it is told of its end first, however long it takes to hear of that.
	 * A session reaps any child later. */
	readable_by(worker->process, clock_ns(CLOCK_MONOTONIC) + DEATH_NS);
	syscall(SYS_waitid, P_PIDFD, worker->process, NULL, WEXITED | WNOHANG, &usage);
	pthread_mutex_lock(&workers.lock);
	close(worker->process);
	worker->fd = worker->process = -1;
	if (worker->cpu_ns < time_ns(&usage.ru_utime) + time_ns(&usage.ru_stime))
		worker->cpu_ns = time_ns(&usage.ru_utime) + time_ns(&usage.ru_stime);
	workers.ended_ns += worker->cpu_ns;
	worker->cpu_ns = 0;
	pthread_mutex_unlock(&workers.lock);
	worker->generation++;
}

void worker_release(struct worker *worker)
{
	struct worker **at = &workers.first;

	if (!worker)
		return;
	stop(worker);
	pthread_mutex_lock(&workers.lock);
	while (*at != worker)
		at = &(*at)->next;
	*at = worker->next;
	pthread_mutex_unlock(&workers.lock);
	free(worker);
}

/* With huge pages, reading a large library takes a third less: most of the time went into handing out the 20
 * MiB that it takes, page by page. The C library then asks for memory in steps of 2 MiB, for which a low
 * limit has no room. It ignores what it does not know. */
#define HUGE_PAGES "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
#define HUGE_LEAST (64UL << 20)

/* Executes the program again, because a newly executed program shares no memory with this one. */
static void execute_worker(struct worker *worker, int end)
{
	char name[] = WORKER_NAME, memory[40], *arguments[] = {name, memory, NULL};
	char huge[] = HUGE_PAGES, *environment[3] = {0};
	size_t nr = 0;
	posix_spawn_file_actions_t actions;
	pid_t pid = 0;
	int process = -1;

	if (reports_variable())
		environment[nr++] = reports_variable();
	if (worker->memory >= HUGE_LEAST)
		environment[nr++] = huge;
	snprintf(memory, sizeof(memory), "%zu%s", worker->memory, worker->disassembles ? WORKER_OF_CODE : "");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, end, WORKER_FD);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&actions, WORKER_FD + 1);
	if (!posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environment)) {
		process = syscall(SYS_pidfd_open, pid, 0);
		if (process < 0) { /* without a pidfd it can't be used */
			kill(pid, SIGKILL);
			waitpid(pid, NULL, WNOHANG); /* a session reaps any child later */
		}
	}
	posix_spawn_file_actions_destroy(&actions);
	pthread_mutex_lock(&workers.lock);
	worker->process = process;
	worker->pid = pid;
	worker->trusted = true;
	pthread_mutex_unlock(&workers.lock);
}

/* Timeout of each message of an answer, and from the request to the last debug file that is opened for it.
 * CPU time is limited by the worker's own timer. */
#define ANSWER_S 30
/* Timeout for sending a request: a worker that is not stuck has room for it. */
#define SEND_S 1

/* Files that make the worker end, one after the other, must not take up a whole CPU: at most so many ends per
 * minute. */
#define ENDS_MOST 6
#define ENDS_NS	  60000000000ULL

static bool rests(const struct worker *worker)
{
	return worker->ends >= ENDS_MOST && clock_ns(CLOCK_MONOTONIC) - worker->since < ENDS_NS;
}

static void count_end(struct worker *worker)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	if (now - worker->since >= ENDS_NS) {
		worker->since = now;
		worker->ends = 0;
	}
	worker->ends++;
}

bool worker_start(struct worker *worker)
{
	const struct timeval sending = {.tv_sec = SEND_S};
	int ends[2];

	if (worker->process >= 0)
		return true;
	if (worker->never)
		return false;
	worker->why = rests(worker) ? WORKER_RESTS : WORKER_UNSTARTED;
	if (rests(worker) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &sending, sizeof(sending));
	/* The child's end must not already have this number: dup2(2) would then leave its close-on-exec flag
	 * set, and execve(2) would close it. */
	if (ends[1] == WORKER_FD) {
		int other = fcntl(ends[1], F_DUPFD_CLOEXEC, WORKER_FD + 1);

		close(ends[1]);
		ends[1] = other;
	}
	execute_worker(worker, ends[1]);
	if (worker->process < 0)
		close(ends[0]);
	else
		worker->fd = ends[0];
	close(ends[1]);
	return worker->process >= 0;
}

/* --- messages --------------------------------------------------------------------------------- */

static bool send_ask(struct worker *worker, const struct ask *ask, const char *text, size_t size, int fd)
{
	return packet_send(worker->fd, (struct iovec[]){{(void *)ask, sizeof(*ask)}, {(void *)text, size}}, 2,
			   fd);
}

/* Whether a debugger or a signal has stopped it. */
static bool is_stopped(const struct worker *worker)
{
	char state[32];

	return proc_status(worker->pid, "State:", state, sizeof(state)) && strstr(state, "stop");
}

#define STOPPED_NS 1000000000ULL
#define SLICE_NS   100000000ULL

/* Waits for a message of the worker. A worker that stays stopped is given up soon. */
static bool wait_for_message(const struct worker *worker)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), until = now + ANSWER_S * 1000000000ULL, stopped = 0;

	while (!readable_by(worker->fd, now + SLICE_NS)) {
		now = clock_ns(CLOCK_MONOTONIC);
		stopped = !is_stopped(worker) ? 0 : stopped ? stopped : now;
		if (now >= until || (stopped && now - stopped >= STOPPED_NS))
			return false;
	}
	return true;
}

static bool receive_answer(struct worker *worker, int *passed)
{
	*passed = -1;
	if (!wait_for_message(worker))
		return false;
	worker->size = packet_receive(worker->fd, worker->got.bytes, sizeof(worker->got), passed);
	return worker->size >= sizeof(struct answer);
}

static bool is_of(const char *text, size_t size, const char *first, const char *last)
{
	size_t length = strnlen(text, size);

	for (size_t i = 0; i < length; i++)
		if (text[i] < *first || text[i] > *last)
			return false;
	return length < size;
}

/* Whether the texts are terminated and contain only allowed characters, all frames are there, and no more
 * memory is used than allowed. */
static bool check_answer(struct worker *worker)
{
	struct answer *answer = &worker->got.answer;
	size_t frames = (size_t)answer->nr_frames * sizeof(struct told_frame);

	return is_of(answer->why, sizeof(answer->why), " ", "~") &&
	       is_of(answer->build_id, sizeof(answer->build_id), "0", "f") &&
	       answer->kept_bytes <= worker->memory && answer->nr_frames <= FRAMES_MAX &&
	       answer->nr_text < MESSAGE_MOST && worker->size == sizeof(*answer) + frames + answer->nr_text &&
	       (!answer->nr_text || !worker->got.bytes[worker->size - 1]);
}

const struct told_frame *answer_frame(const struct answer *answer, size_t i)
{
	return (const struct told_frame *)(answer + 1) + i;
}

const char *answer_text(const struct answer *answer, __u32 at)
{
	return at < answer->nr_text ? (const char *)answer_frame(answer, answer->nr_frames) + at : NULL;
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define BLOCK 512 /* bytes, unit of st_blocks */

/* Maps the memory that came with an answer. A file with holes is refused: reading a hole would allocate
 * memory that was never counted. */
static bool map_sealed(int fd, size_t most, struct sealed *sealed)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &stat) || stat.st_size <= 0 ||
	    (size_t)stat.st_size > most || stat.st_blocks < stat.st_size / BLOCK)
		return false;
	sealed->size = stat.st_size;
	sealed->memory = mmap(NULL, sealed->size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (sealed->memory == MAP_FAILED)
		*sealed = (struct sealed){0};
	return sealed->memory;
}

void sealed_release(struct sealed *sealed)
{
	if (sealed->memory)
		munmap(sealed->memory, sealed->size);
	*sealed = (struct sealed){0};
}

/* The reason why a worker can't be confined, as a constant text. */
static const char *never_of(const char *why)
{
	static const char *const reasons[] = {NEVER_LIBRARY, NEVER_BUILT};

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (!strcmp(why, reasons[i]))
			return reasons[i];
	return NEVER_SECCOMP;
}

#define FILES_MOST 16 /* debug files that are opened for one request; five are usual */

static bool converse_once(struct worker *worker, struct question_of_worker *question)
{
	bool sent = send_ask(worker, &question->ask, question->text, question->size, question->fd);
	__u64 until = clock_ns(CLOCK_MONOTONIC) + ANSWER_S * 1000000000ULL;
	int passed;

	/* The worker died after the last request, not because of this one: start another one. Requests about
	 * a file that it had read can't be repeated. */
	if (!sent && question->ask.kind != ASK_LOAD && !ask_is_of_known(question->ask.kind)) {
		stop(worker);
		sent = worker_start(worker) &&
		       send_ask(worker, &question->ask, question->text, question->size, question->fd);
	}
	question->unsent = !sent;
	if (!sent)
		return false;
	for (int files = 0; receive_answer(worker, &passed); files++) {
		const struct answer *answer = &worker->got.answer;
		bool right = check_answer(worker);
		const char *path;

		if (answer->kind == ANSWER_NEVER && right && worker->trusted) {
			worker->never = true;
			worker->why = never_of(answer->why);
			return false;
		}
		worker->trusted = false;
		if (answer->kind == ANSWER_MEMORY)
			worker->why = WORKER_MEMORY;
		if (answer->kind == ANSWER_DONE && right && !answer->why[0] && passed >= 0 &&
		    question->sealed)
			right = map_sealed(passed, worker->memory, question->sealed);
		if (passed >= 0)
			close(passed);
		path = right ? answer_text(answer, 0) : NULL;
		if (answer->kind == ANSWER_DONE || !path || !question->place || files == FILES_MOST ||
		    clock_ns(CLOCK_MONOTONIC) > until)
			return right && answer->kind == ANSWER_DONE;
		passed = place_open_debug(question->place, answer->ours, path, question->owner,
					  question->debug_dir);
		right = send_ask(worker, &(struct ask){.kind = ASK_OPENED}, NULL, 0, passed);
		if (passed >= 0)
			close(passed);
		if (!right)
			return false;
	}
	return false;
}

const struct answer *worker_ask(struct worker *worker, struct question_of_worker *question)
{
	bool started = worker_start(worker), done;

	if (started)
		worker->why = WORKER_FAILED;
	done = started && converse_once(worker, question);

	if (question->fd >= 0)
		close(question->fd);
	if (done)
		return &worker->got.answer;
	if (question->sealed)
		sealed_release(question->sealed);
	if (started && !question->unsent)
		count_end(worker);
	stop(worker);
	return NULL;
}

void worker_wait(struct worker *worker)
{
	worker_ask(worker, &(struct question_of_worker){.ask = {.kind = ASK_OPEN}, .fd = -1});
}

void worker_forget(struct worker *worker, __u32 id)
{
	if (worker->process >= 0 &&
	    !send_ask(worker, &(struct ask){.kind = ASK_FORGET, .id = id}, NULL, 0, -1))
		stop(worker);
}

/* --- symbols ---------------------------------------------------------------------------------- */

/* Returns the list of `nr` items of `size` bytes at *at, and moves *at after it; NULL if it exceeds the
 * memory. */
static void *take_list(const struct sealed *sealed, size_t *at, __u64 nr, size_t size)
{
	char *list = sealed->memory + *at;

	if (nr > (sealed->size - *at) / size)
		return NULL;
	*at += nr * size;
	return list;
}

static bool take_segments(const struct sealed *sealed, size_t *at, __u64 nr, struct segment **segments,
			  size_t *nr_segments)
{
	*nr_segments = nr;
	return (*segments = take_list(sealed, at, nr, sizeof(**segments)));
}

/* Takes what symbols have beside their strings. */
static bool take_table(const struct sealed *sealed, size_t *at, const __u64 counts[2], struct symbols *found)
{
	found->spans.nr = counts[0];
	found->nr = counts[1];
	found->spans.list = take_list(sealed, at, found->spans.nr, sizeof(*found->spans.list));
	found->list = found->spans.list ? take_list(sealed, at, found->nr, sizeof(*found->list)) : NULL;
	return found->list;
}

static bool take_nameless(const struct sealed *sealed, size_t *at, __u64 nr, struct nameless *found)
{
	found->nr = nr;
	return (found->list = take_list(sealed, at, nr, sizeof(*found->list)));
}

static bool take_strings(const struct sealed *sealed, size_t *at, __u64 size, struct symbols *found)
{
	found->strings_size = size;
	found->strings = take_list(sealed, at, size, 1);
	if (!found->strings || (size && found->strings[size - 1]))
		return false;
	for (size_t i = 0; i < found->spans.nr; i++)
		if (found->spans.list[i].what >= found->nr && found->spans.list[i].what != SPANS_NONE)
			return false;
	for (size_t i = 0; i < found->nr; i++)
		if (found->list[i].name >= size)
			return false;
	return true;
}

bool worker_symbols(struct sealed *sealed, const struct answer *answer, struct told_symbols *told)
{
	struct told_symbols found = {0};
	size_t at = 0;

	if (!sealed->memory ||
	    !take_segments(sealed, &at, answer->counts[0], &found.segments, &found.nr_segments) ||
	    !take_segments(sealed, &at, answer->counts[1], &found.loaded, &found.nr_loaded) ||
	    !take_table(sealed, &at, answer->counts + 2, &found.functions) ||
	    !take_table(sealed, &at, answer->counts + 4, &found.objects) ||
	    !take_nameless(sealed, &at, answer->counts[6], &found.nameless) ||
	    !take_strings(sealed, &at, answer->counts[7], &found.functions) ||
	    !take_strings(sealed, &at, answer->counts[8], &found.objects))
		return false;
	found.functions.mapped = sealed->memory;
	found.functions.mapped_size = sealed->size;
	*told = found;
	*sealed = (struct sealed){0};
	return true;
}
