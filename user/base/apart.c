// SPDX-License-Identifier: GPL-2.0-only
#include "base/apart.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/packet.h"
#include "base/readable.h"
#include "base/reports.h"

static struct {
	pthread_mutex_t lock;
	struct apart *first;
	__u64 ended_ns, started;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __u64 cpu_ns(struct apart *apart)
{
	clockid_t clock;
	__u64 now = clock_getcpuclockid(apart->pid, &clock) ? 0 : clock_ns(clock);

	if (now > apart->cpu_ns)
		apart->cpu_ns = now;
	return apart->cpu_ns;
}

static void close_from(unsigned int first)
{
	close_range(first, ~0U, 0);
	reports_keep();
}

void apart_close_opened(void)
{
	close_from(1);
}

/* The socket becomes descriptor 0. */
static void __attribute__((noreturn))
begin(int socket, int kept, const char *name, void (*serve)(int socket, const void *context),
      const void *context)
{
	sigset_t signals;

	sigfillset(&signals);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	prctl(PR_SET_NAME, name);
	if (socket)
		dup2(socket, 0);
	if (kept >= 0 && kept != APART_KEPT)
		dup2(kept, APART_KEPT);
	close_from(kept >= 0 ? APART_KEPT + 1 : 1);
	serve(0, context);
	_exit(0);
}

bool apart_start(struct apart *apart, const char *name, void (*serve)(int socket, const void *context),
		 const void *context, int kept)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	pid = fork();
	if (!pid)
		begin(ends[1], kept, name, serve, context);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return false;
	}
	pthread_mutex_lock(&all.lock);
	*apart = (struct apart){.pid = pid, .socket = ends[0], .next = all.first};
	all.first = apart;
	__atomic_fetch_add(&all.started, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&all.lock);
	return true;
}

int apart_receive(const struct apart *apart, void *packet, size_t size, int *fd, __u64 deadline)
{
	*fd = -1;
	if (!readable_by(apart->socket, deadline))
		return ETIMEDOUT;
	return packet_receive(apart->socket, packet, size, fd) == size ? 0 : ECHILD;
}

void apart_leave(struct apart *apart)
{
	struct apart **at = &all.first;

	if (!apart->pid)
		return;
	pthread_mutex_lock(&all.lock);
	while (*at != apart)
		at = &(*at)->next;
	*at = apart->next;
	all.ended_ns += cpu_ns(apart);
	pthread_mutex_unlock(&all.lock);
	close(apart->socket);
	waitpid(apart->pid, NULL, WNOHANG); /* a session reaps any child later */
	*apart = (struct apart){.socket = -1};
}

int apart_once(const char *name, void (*serve)(int socket, const void *context), const void *context,
	       int kept, void *packet, size_t size, int *fd, __u64 wait_ns)
{
	__u64 deadline = clock_ns(CLOCK_MONOTONIC) + wait_ns;
	struct apart apart = {0};
	int err;

	*fd = -1;
	if (!apart_start(&apart, name, serve, context, kept))
		return EAGAIN;
	err = apart_receive(&apart, packet, size, fd, deadline);
	apart_leave(&apart);
	return err;
}

__u64 apart_cpu_ns(void)
{
	__u64 sum;

	pthread_mutex_lock(&all.lock);
	sum = all.ended_ns;
	for (struct apart *apart = all.first; apart; apart = apart->next)
		sum += cpu_ns(apart);
	pthread_mutex_unlock(&all.lock);
	return sum;
}

__u64 apart_started(void)
{
	return __atomic_load_n(&all.started, __ATOMIC_RELAXED);
}
