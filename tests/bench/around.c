// SPDX-License-Identifier: GPL-2.0-only
/*
 * around [-p OBJECT] [-o FILE] COMMAND…: runs COMMAND and counts page faults in it and its
 * children, with an event opened on the task as nhmtap does. With -p every fault is a sample as
 * well, and the program of this BPF object is called for it. The count goes to FILE. Like nhmtap,
 * it counts from the exec on. It exits with COMMAND's status.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static int open_event(pid_t pid, int sampled)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = sampled,
		.sample_type = sampled ? PERF_SAMPLE_IP : 0,
		.wakeup_events = sampled,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		fail("perf_event_open");
	return fd;
}

static void attach(const char *path, int event)
{
	struct bpf_object *object = bpf_object__open(path);
	struct bpf_map *tables = object ? bpf_object__find_map_by_name(object, "tables") : NULL;

	if (tables) /* one per CPU, as in nhmtap */
		bpf_map__set_max_entries(tables, libbpf_num_possible_cpus());
	if (!object || bpf_object__load(object) ||
	    bpf_link_create(bpf_program__fd(bpf_object__next_program(object, NULL)), event, BPF_PERF_EVENT,
			    NULL) < 0)
		fail(path);
}

static void write_count(const char *path, int event)
{
	unsigned long long count[3]; /* value, time enabled, time running */
	FILE *file = fopen(path, "w");

	if (!file || read(event, count, sizeof(count)) != sizeof(count) ||
	    fprintf(file, "%llu\n", count[0]) < 0 || fclose(file))
		fail(path);
}

int main(int argc, char **argv)
{
	const char *program = NULL, *out = NULL;
	int go[2], event, option, status;
	pid_t child;

	while ((option = getopt(argc, argv, "+p:o:")) != -1)
		*(option == 'p' ? &program : &out) = optarg;
	if (optind >= argc || pipe(go))
		return 2;
	child = fork();
	if (!child) {
		char byte;

		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			execvp(argv[optind], argv + optind);
		_exit(127);
	}
	event = open_event(child, program != NULL);
	if (program)
		attach(program, event);
	if (write(go[1], "", 1) != 1 || waitpid(child, &status, 0) < 0)
		fail("the command");
	if (out)
		write_count(out, event);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
