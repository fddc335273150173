// SPDX-License-Identifier: GPL-2.0-only
#include "output/progress.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/visible.h"
#include "output/text.h"

#define LEAST_ROWS 3 /* of a terminal, one of which can be the line's */

/* The cursor stays where it is. The whole screen scrolls again, and its last row is cleared. */
#define GIVE_BACK "\0337\033[r\033[999;1H\033[K\0338"

static struct {
	bool on;		 /* progress is shown, once PROGRESS_NS have passed */
	volatile bool shown;	 /* the line is on the screen now */
	bool shared;		 /* with a command: it is on the last row */
	bool others;		 /* somebody else has written since the last update */
	int written;		 /* shared: an inotify(7) instance that tells of it; else -1 */
	__u64 began_ns, next_ns; /* CLOCK_MONOTONIC */
} line = {.written = -1};

/* Returns whether somebody has written to the terminal. */
static bool forget_written(void)
{
	char notes[1024];
	bool any = false;

	while (line.written >= 0 && read(line.written, notes, sizeof(notes)) > 0)
		any = true;
	return any;
}

/* Removes the line. Called before anything else is written to stderr, and at the end. */
static void hide_line(void)
{
	if (!line.shown)
		return;
	fputs(line.shared ? GIVE_BACK : "\r\033[K", stderr);
	fflush(stderr);
	line.shown = false;
	forget_written();
}

void progress_abandon(void)
{
	ssize_t written = line.shown && line.shared ? write(STDERR_FILENO, GIVE_BACK, strlen(GIVE_BACK)) : 0;

	(void)written;
}

bool progress_begin(bool quiet)
{
	line.on = !quiet && isatty(STDERR_FILENO);
	say_behind(hide_line);
	line.began_ns = clock_ns(CLOCK_MONOTONIC);
	line.next_ns = line.began_ns + PROGRESS_NS;
	return line.on;
}

/* Whether text can be placed on the screen, as on any terminal that has a name today. */
static bool has_rows(void)
{
	const char *name = getenv("TERM");

	return name && *name && strcmp(name, "dumb") && strcmp(name, "unknown");
}

/* A shell that stops this process has the whole screen. */
static void on_stop(int number)
{
	(void)number;
	progress_abandon();
	line.shown = false;
	raise(SIGSTOP);
}

int progress_share(void)
{
	struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART}, before;

	line.written = line.on && has_rows() ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
	line.shared = line.on =
		line.written >= 0 && inotify_add_watch(line.written, "/proc/self/fd/2", IN_MODIFY) >= 0;
	if (!line.on)
		progress_end();
	else if (!sigaction(SIGTSTP, NULL, &before) && before.sa_handler == SIG_DFL)
		sigaction(SIGTSTP, &action, NULL);
	return line.written;
}

void progress_give_way(void)
{
	line.others |= forget_written();
	hide_line();
}

/* Whether a shared terminal is the line's now: others are silent, this is no job in the background, and
 * nobody has a screen of its own, as an editor has, which reads each key. */
static bool is_free(const struct winsize *size)
{
	struct termios mode;
	bool silent = !line.others;
	pid_t foreground = tcgetpgrp(STDERR_FILENO);

	line.others = false;
	return silent && size->ws_row >= LEAST_ROWS && (foreground < 0 || foreground == getpgrp()) &&
	       !tcgetattr(STDERR_FILENO, &mode) && (mode.c_lflag & ICANON);
}

/* Of a screen whose last row the cursor is in, all lines move up. */
static void show_on_last_row(const char *text, const struct winsize *size)
{
	fprintf(stderr, "%s\0337\033[1;%dr\033[%d;1H%.*s\033[K\0338", line.shown ? "" : "\033D\033[A",
		size->ws_row - 1, size->ws_row, size->ws_col - 1, text);
}

bool progress_due(void)
{
	__u64 now;

	if (!line.on)
		return false;
	now = clock_ns(CLOCK_MONOTONIC);
	if (now < line.next_ns)
		return false;
	line.next_ns = now + PROGRESS_NS;
	return true;
}

/* The cursor is left in the first column, so that other output overwrites the line. */
void progress_show(const char *format, ...)
{
	struct winsize size = {0};
	char text[240];
	va_list args;
	int used;

	if (!line.on)
		return;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		size.ws_col = TEXT_WIDTH;
	used = snprintf(text, sizeof(text), "nhmtap: %.1f s",
			(clock_ns(CLOCK_MONOTONIC) - line.began_ns) / 1e9);
	va_start(args, format);
	vsnprintf(text + used, sizeof(text) - used, format, args);
	va_end(args);
	if (line.shared && !is_free(&size)) {
		hide_line();
		return;
	}
	/* A line as long as the screen is wide would wrap. */
	if (line.shared)
		show_on_last_row(text, &size);
	else
		fprintf(stderr, "\r\033[K%.*s\r", size.ws_col - 1, text);
	fflush(stderr);
	line.shown = true;
	forget_written();
}

void progress_end(void)
{
	hide_line();
	if (line.written >= 0)
		close(line.written);
	line.written = -1;
	line.on = line.shared = false;
}

const char *progress_size(__u64 bytes, char *buffer, size_t size)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	double number = bytes;
	size_t i = 0;

	while (number >= 1024 && i + 1 < ARRAY_SIZE(units)) {
		number /= 1024;
		i++;
	}
	snprintf(buffer, size, i ? "%.1f %s" : "%.0f %s", number, units[i]);
	return buffer;
}

void progress_show_read(int fd, __u64 bytes)
{
	struct stat stat;
	char amount[32];

	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size)
		progress_show(", %.0f%% of %s read", 100.0 * bytes / stat.st_size,
			      progress_size(stat.st_size, amount, sizeof(amount)));
	else
		progress_show(", %s read", progress_size(bytes, amount, sizeof(amount)));
}
