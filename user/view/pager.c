// SPDX-License-Identifier: GPL-2.0-only
#include "view/pager.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output/scribe_server.h"
#include "output/sink.h"

struct text show_begin(const char *path)
{
	return path ? (struct text){0} : text_for_terminal(STDOUT_FILENO);
}

/* less: colours pass, it ends at once if all fits on the screen, and what it has shown stays. */
#define LESS_OPTIONS "FRX"
#define NO_PAGER     "if command -v less > /dev/null; then exec less; else exec cat; fi"

static void run_pager(int from)
{
	const char *pager = getenv("PAGER");

	signal(SIGPIPE, SIG_DFL);
	dup2(from, STDIN_FILENO);
	setenv("LESS", LESS_OPTIONS, 0);
	execl("/bin/sh", "sh", "-c", pager && *pager ? pager : NO_PAGER, (char *)NULL);
	_exit(127);
}

/* Writes everything, unless the pager ends before. */
static void write_all(int fd, const struct text *text)
{
	size_t done = 0;

	while (done < text->used) {
		ssize_t written = write(fd, text->bytes + done, text->used - done);

		if (written < 0 && errno != EINTR)
			return;
		done += written > 0 ? written : 0;
	}
}

/* ^C is for the pager, which ends when its user wants it to. */
static int page(const struct text *text, struct refusal *refusal)
{
	int ends[2], status, err;
	pid_t pid;

	if (pipe(ends) || (pid = fork()) < 0) {
		err = errno;
		refuse(refusal, STATUS_REFUSED, "the pager");
		refusal->error = err;
		return because(refusal, "it can't be started: %s", strerror(err));
	}
	if (!pid) {
		close(ends[1]);
		run_pager(ends[0]);
	}
	close(ends[0]);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	write_all(ends[1], text);
	close(ends[1]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* The shell has said why there is no such pager. */
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127))
		write_all(STDOUT_FILENO, text);
	return 0;
}

int show_text(struct text *text, const char *path, struct refusal *refusal)
{
	struct text safe = show_begin(path);
	struct sink sink;
	int err;

	text_add_visible(&safe, text->bytes ?: "");
	if (safe.width) {
		if (safe.ascii)
			text_to_ascii(&safe);
		text_fit(&safe, safe.width);
		err = page(&safe, refusal);
		free(safe.bytes);
		return err;
	}
	err = sink_open(&sink, path, false, false, scribe_serve, refusal);
	if (!err) {
		sink_put(&sink, safe.bytes, safe.used);
		err = sink_close(&sink) ? sink_refusal(&sink, refusal) : 0;
	}
	free(safe.bytes);
	return err;
}
