// SPDX-License-Identifier: GPL-2.0-only
#include "output/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/visible.h"
#include "output/text.h"

static struct {
	bool on;		 /* progress is shown, once PROGRESS_NS have passed */
	bool shown;		 /* the line is on the screen now */
	__u64 began_ns, next_ns; /* CLOCK_MONOTONIC */
} line;

/* Removes the line. Called before anything else is written to stderr, and at the end. */
static void hide_line(void)
{
	if (!line.shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	line.shown = false;
}

bool progress_begin(bool quiet)
{
	line.on = !quiet && isatty(STDERR_FILENO);
	say_behind(hide_line);
	line.began_ns = clock_ns(CLOCK_MONOTONIC);
	line.next_ns = line.began_ns + PROGRESS_NS;
	return line.on;
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
	int columns, used;

	if (!line.on)
		return;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		size.ws_col = TEXT_WIDTH;
	used = snprintf(text, sizeof(text), "nhmtap: %.1f s",
			(clock_ns(CLOCK_MONOTONIC) - line.began_ns) / 1e9);
	va_start(args, format);
	vsnprintf(text + used, sizeof(text) - used, format, args);
	va_end(args);
	/* A line as long as the screen is wide would wrap. */
	columns = size.ws_col - 1;
	fprintf(stderr, "\r\033[K%.*s\r", columns, text);
	fflush(stderr);
	line.shown = true;
}

void progress_end(void)
{
	hide_line();
	line.on = false;
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
