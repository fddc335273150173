// SPDX-License-Identifier: GPL-2.0-only
#include "selftest/measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output/member.h"

static void start_program(const struct test_run *run, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execv(run->selftest->self, (char *const *)run->arguments);
	_exit(127);
}

static void read_records(struct test_run *run, int in)
{
	FILE *stream = fdopen(in, "re");
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stream) > 0) {
		json_t *record = json_loads(line, 0, NULL);

		if (record)
			json_array_append_new(run->records, record);
	}
	free(line);
	fclose(stream);
}

int run_measure(struct test_run *run)
{
	int pipe_[2], status;
	pid_t child;

	if (pipe2(pipe_, O_CLOEXEC))
		return -1;
	child = fork();
	if (!child)
		start_program(run, pipe_[1]);
	close(pipe_[1]);
	read_records(run, pipe_[0]);
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

const json_t *run_record(const struct test_run *run, const char *type)
{
	const json_t *record;
	size_t i;

	json_array_foreach(run->records, i, record)
		if (!strcmp(string(record, "type"), type))
			return record;
	return NULL;
}

void run_each_entry(struct test_run *run, const char *type,
		    void (*each)(struct test_run *, const json_t *, void *), void *context)
{
	const json_t *record, *entry;
	size_t i, j;

	json_array_foreach(run->records, i, record) {
		if (strcmp(string(record, "type"), type))
			continue;
		json_array_foreach(json_object_get(record, "entries"), j, entry)
			each(run, entry, context);
	}
}
