// SPDX-License-Identifier: GPL-2.0-only
/*
 * puppet [-w WORKERS] [STEP…]: takes the given steps and does nothing else, so that a test knows
 * what must be measured. It prints "ready PID START STOP" (the section of touch() and busy()),
 * takes each STEP, and then each line of its input as a step. After each step it prints "done ID".
 *
 *   faults=N      N page faults in touch(), by the process itself; ID is its pid
 *   thread=N      the same by a new thread, which then ends; ID is its tid
 *   worker=I,N    the same by worker thread I, which exists from the beginning; ID is its tid
 *   fork=N        the same by a new child, which then exits; ID is its pid
 *   vforks=C,N    the same by each of C new processes, one after the other, which share their
 *                 parent's memory and so take no further faults; ID is the pid of the last
 *   cgroups=DIR,C,N  the same, each in a new cgroup below DIR, which is removed after it
 *   name=HEX      sets its name to these bytes
 *   spin=MS       runs in busy() for MS of its CPU time
 *   wait          until the next line
 *   exit=S        exits with status S
 *
 * The number of page faults is exact: each touches a page of a new mapping without huge pages for
 * the first time. All older memory is locked, so a faults=N after "ready" takes no other faults
 * (mlockall() has also copied the private pages).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_MAX 64

struct task {
	long faults;
	pid_t tid;
};

struct worker {
	pthread_t thread;
	struct task task;
	int go[2], done[2];
};

static struct worker workers[WORKERS_MAX];

/* In a section of its own: the linker defines symbols for its start and end. */
__attribute__((noinline, section("touching"))) static void touch(volatile char *page)
{
	*page = 1;
}
extern const char __start_touching[], __stop_touching[];

static void fault(long n)
{
	long size = sysconf(_SC_PAGESIZE);
	char *pages;

	if (!n)
		return;
	pages = mmap(NULL, n * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		_exit(99);
	madvise(pages, n * size, MADV_NOHUGEPAGE);
	for (long i = 0; i < n; i++)
		touch(pages + i * size);
	munmap(pages, n * size);
}

static void *run_task(void *argument)
{
	struct task *task = argument;

	task->tid = gettid();
	fault(task->faults);
	return NULL;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	char byte;

	while (read(worker->go[0], &byte, 1) == 1) {
		run_task(&worker->task);
		if (write(worker->done[1], "", 1) != 1)
			break;
	}
	return NULL;
}

static pid_t in_new_thread(long faults)
{
	struct task task = {faults, 0};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_task, &task))
		_exit(99);
	pthread_join(thread, NULL);
	return task.tid;
}

static pid_t in_worker(int which, long faults)
{
	struct worker *worker = &workers[which];
	char byte;

	worker->task.faults = faults;
	if (write(worker->go[1], "", 1) != 1 || read(worker->done[0], &byte, 1) != 1)
		_exit(99);
	return worker->task.tid;
}

static pid_t in_child(long faults)
{
	pid_t pid = fork();

	if (!pid) {
		fault(faults);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return pid;
}

static pid_t in_vforks(long children, long faults)
{
	pid_t pid = 0;

	while (children-- > 0) {
		pid = vfork();
		if (!pid) {
			fault(faults);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return pid;
}

static void enter(const char *folder)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(99);
	close(fd);
}

static pid_t in_cgroups(const char *value)
{
	char folder[256], path[280];
	long cgroups, faults;
	pid_t pid = 0;

	if (sscanf(value, "%255[^,],%ld,%ld", folder, &cgroups, &faults) != 3)
		exit(98);
	while (cgroups-- > 0) {
		snprintf(path, sizeof(path), "%s/%ld", folder, cgroups);
		if (mkdir(path, 0755))
			exit(99);
		pid = vfork();
		if (!pid) {
			enter(path);
			fault(faults);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		while (rmdir(path) && errno == EBUSY) /* its process has not left yet */
			usleep(100);
	}
	return pid;
}

static void rename_to(const char *hex)
{
	char name[16] = "";
	unsigned int byte;

	for (int i = 0; i < 15 && sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
		name[i] = byte;
	prctl(PR_SET_NAME, name);
}

static long cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Millions of rounds between two calls of cpu_ms(), whose cost is negligible in comparison. */
__attribute__((noinline, section("touching"))) static void busy(void)
{
	for (volatile int i = 0; i < 5000000; i++)
		;
}

static void spin(long ms)
{
	long until = cpu_ms() + ms;

	while (cpu_ms() < until)
		busy();
}

static void step(const char *text)
{
	const char *value = strchr(text, '=');
	long n = value ? atol(++value) : 0;
	pid_t id = getpid();

	if (!strncmp(text, "faults=", 7))
		fault(n);
	else if (!strncmp(text, "thread=", 7))
		id = in_new_thread(n);
	else if (!strncmp(text, "worker=", 7))
		id = in_worker(n, atol(strchr(value, ',') + 1));
	else if (!strncmp(text, "fork=", 5))
		id = in_child(n);
	else if (!strncmp(text, "vforks=", 7))
		id = in_vforks(n, atol(strchr(value, ',') + 1));
	else if (!strncmp(text, "cgroups=", 8))
		id = in_cgroups(value);
	else if (!strncmp(text, "name=", 5))
		rename_to(value);
	else if (!strncmp(text, "spin=", 5))
		spin(n);
	else if (!strncmp(text, "exit=", 5))
		exit(n);
	else
		exit(98);
	printf("done %d\n", id);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int nr_workers = argc > 2 && !strcmp(argv[1], "-w") ? atoi(argv[2]) : 0;
	char line[256];

	for (int i = 0; i < nr_workers; i++)
		if (pipe(workers[i].go) || pipe(workers[i].done) ||
		    pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 99;
	/* Use everything once before memory is locked. */
	fault(1);
	for (int i = 0; i < nr_workers; i++)
		in_worker(i, 1);
	printf("ready %d %#lx %#lx\n", getpid(), (long)__start_touching, (long)__stop_touching);
	fflush(stdout);
	mlockall(MCL_CURRENT);

	for (int i = nr_workers ? 3 : 1; i < argc; i++)
		if (strcmp(argv[i], "wait"))
			step(argv[i]);
		else if (!fgets(line, sizeof(line), stdin))
			return 0;
	while (fgets(line, sizeof(line), stdin))
		step(line);
	return 0;
}
