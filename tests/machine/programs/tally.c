/*
 * Counts events of a program as perf stat does, in a twentieth of its time.
 *
 * usage: tally EVENT... -- PROGRAM [ARGUMENT...]
 *
 * EVENT is CONFIG:CONFIG1:PRECISE:KERNEL, numbers in hexadecimal; KERNEL is 0
 * (user level only), 1 (kernel level only) or 2 (both), and 4 more if PROGRAM's own
 * counters may not take turns with this one. A line for each, in the order given:
 * count, time enabled, time running; or the error of opening it, and then the exit
 * status is 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_event(const char *text, pid_t pid)
{
	unsigned long long config = 0, config1 = 0;
	unsigned int precise = 0, kernel = 0;
	struct perf_event_attr a = {
		.type = PERF_TYPE_RAW,
		.size = sizeof(a),
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
		.exclude_guest = 1,
	};

	sscanf(text, "%llx:%llx:%x:%x", &config, &config1, &precise, &kernel);
	a.config = config;
	a.config1 = config1;
	a.precise_ip = precise;
	a.sample_period = precise ? 1ull << 30 : 0; /* PEBS needs one; it is never reached */
	a.exclude_kernel = (kernel & 3) == 0;
	a.exclude_user = (kernel & 3) == 1;
	a.pinned = kernel >> 2;
	return syscall(SYS_perf_event_open, &a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	int fds[64], n = 0, go[2], failed = 0, status;
	char byte = 0;
	pid_t pid;

	while (n + 1 < argc && n < 64 && strcmp(argv[n + 1], "--"))
		n++;
	if (n + 2 >= argc || pipe(go))
		return 2;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			execvp(argv[n + 2], argv + n + 2);
		_exit(127);
	}
	for (int k = 0; k < n; k++) {
		fds[k] = open_event(argv[k + 1], pid);
		if (fds[k] < 0) {
			printf("%s\n", strerror(errno));
			failed = 1;
		}
	}
	if (!failed)
		write(go[1], &byte, 1);
	close(go[1]);
	waitpid(pid, &status, 0);
	for (int k = 0; k < n && !failed; k++) {
		uint64_t v[3] = {0};

		read(fds[k], v, sizeof(v));
		printf("%llu %llu %llu\n", (unsigned long long)v[0], (unsigned long long)v[1],
		       (unsigned long long)v[2]);
	}
	return failed || status;
}
