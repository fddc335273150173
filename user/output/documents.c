// SPDX-License-Identifier: GPL-2.0-only
#include "output/documents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define MOMENT	   "%t"
#define UNFINISHED ".new" /* suffix of a file's name until the file is complete */

bool documents_is_pattern(const char *path)
{
	return path && strstr(path, MOMENT);
}

/* 20260131T235959.123456789Z, so that the alphabetical order of names is the order of time. */
static void print_moment(const struct timespec *time, FILE *out)
{
	struct tm tm;

	gmtime_r(&time->tv_sec, &tm);
	fprintf(out, "%04d%02d%02dT%02d%02d%02d.%09ldZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
		tm.tm_hour, tm.tm_min, tm.tm_sec, time->tv_nsec);
}

/* The path of a document's file, followed by `behind`. The caller frees it. */
static char *path_of(const char *pattern, const struct timespec *since, const char *behind)
{
	const char *at, *next;
	char *path = NULL;
	size_t size;
	FILE *out = xopen_memstream(&path, &size);

	for (at = pattern; (next = strstr(at, MOMENT)); at = next + strlen(MOMENT)) {
		fwrite(at, 1, next - at, out);
		print_moment(since, out);
	}
	fprintf(out, "%s%s", at, behind);
	xclose_memstream(out);
	return path;
}

/*
 * Records hold addresses and command lines, so the files of a pattern are not readable by other users. A
 * single file that is replaced again and again is meant for a collector that runs as another user, so it is.
 *
 * The file is always a new one. What is there already was left behind by a run that was killed, or is another
 * user's who may write to the folder: a FIFO, which would be waited for, or a link to a file of ours.
 */
static int create(const struct documents *documents, const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int mode = documents_is_pattern(documents->path) ? 0640 : 0644;
	int fd = open(path, flags, mode);

	if (fd < 0 && errno == EEXIST && !unlink(path))
		fd = open(path, flags, mode);
	return fd < 0 ? -errno : fd;
}

void documents_begin(struct documents *documents, const char *path)
{
	*documents = (struct documents){.path = path, .end = &documents->first};
}

bool documents_leads_into_proc(const char *path)
{
	static const char proc[] = "/proc/";
	char leads_to[sizeof(proc)] = "";

	return readlink(path, leads_to, sizeof(proc) - 1) > 0 && !strcmp(leads_to, proc);
}

/* Whether a document would take the place of what is no file: root would make /dev/null one. Returns 0 or
 * -errno. */
static int check_place(const char *path)
{
	struct stat there;

	if (documents_leads_into_proc(path))
		return -ENOTSUP;
	if (stat(path, &there) || S_ISREG(there.st_mode))
		return 0;
	return S_ISDIR(there.st_mode) ? -EISDIR : -ENOTSUP;
}

/* As above, for the place of a page that was written before: others may have put something else there. A link
 * is not followed, since what it leads to may be behind a server that the session would wait for: the page
 * takes the place of the link alone. */
static int check_again(const char *path)
{
	struct stat there;

	return lstat(path, &there) || S_ISREG(there.st_mode) || S_ISLNK(there.st_mode) ? 0
										       : check_place(path);
}

int documents_open(struct documents *documents, const char *path)
{
	struct timespec now;
	char *trial;
	int fd, err = check_place(path);

	documents_begin(documents, path);
	if (err)
		return err;
	clock_gettime(CLOCK_REALTIME, &now);
	trial = path_of(path, &now, UNFINISHED);
	fd = create(documents, trial);
	if (fd >= 0) {
		close(fd);
		unlink(trial);
	}
	free(trial);
	return fd < 0 ? fd : 0;
}

void documents_release(struct documents *documents)
{
	while (documents->first)
		documents_pop(documents);
}

static void take_out(struct documents *documents, struct document **at)
{
	struct document *gone = *at;

	*at = gone->next;
	if (!*at)
		documents->end = at;
	documents->bytes -= gone->size;
	free(gone->bytes);
	free(gone);
}

/* Drops a document. The records of parts are with the first part that is left, which `before` may be. */
static void drop(struct documents *documents, struct document **at, struct document *before)
{
	if (before && before->goes_on) {
		documents->dropped += before->records;
		before->records = before->missed = 0;
		before->goes_on = (*at)->goes_on;
	}
	documents->dropped += (*at)->records;
	take_out(documents, at);
}

void documents_add(struct documents *documents, const struct document *document, size_t most,
		   unsigned int kept)
{
	struct document *own = xmalloc(sizeof(*own)), **oldest = &documents->first, *before = NULL;

	*own = *document;
	own->next = NULL;
	own->bytes = xmalloc(document->size + 1);
	memcpy(own->bytes, document->bytes, document->size);
	*documents->end = own;
	documents->end = &own->next;
	documents->bytes += own->size;
	for (; kept && *oldest; kept--) {
		before = *oldest;
		oldest = &before->next;
	}
	documents->full = most && documents->bytes > most;
	while (documents->full && documents->bytes > most && *oldest && *oldest != own)
		drop(documents, oldest, before);
}

void documents_pop(struct documents *documents)
{
	documents->full = false;
	take_out(documents, &documents->first);
}

void documents_split(struct documents *documents, const struct half parts[2])
{
	struct document *first = documents->first, *second = xmalloc(sizeof(*second));

	documents->bytes -= first->size;
	free(first->bytes);
	*second = *first;
	second->records = second->missed = 0;
	first->next = second;
	first->goes_on = true;
	if (!second->next)
		documents->end = &second->next;
	first->bytes = parts[0].bytes;
	second->bytes = parts[1].bytes;
	first->size = parts[0].size;
	second->size = parts[1].size;
	documents->bytes += first->size + second->size;
}

void documents_taken(struct documents *documents)
{
	const struct document *first = documents->first;

	if (first->goes_on && first->next) {
		first->next->records += first->records;
		first->next->missed += first->missed;
	}
	documents_pop(documents);
}

static int write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		bytes += n;
		size -= n;
	}
	return 0;
}

int documents_write(struct documents *documents)
{
	const struct document *document;
	char *path, *unfinished;
	int fd, err;

	while (documents->first->next && !documents_is_pattern(documents->path))
		documents_pop(documents);
	err = documents_is_pattern(documents->path) ? 0 : check_again(documents->path);
	if (err)
		return err;
	document = documents->first;
	path = path_of(documents->path, &document->since, "");
	unfinished = path_of(documents->path, &document->since, UNFINISHED);
	fd = create(documents, unfinished);
	err = fd < 0 ? fd : write_all(fd, document->bytes, document->size);
	/* Some file systems report only at close(2) that the disk is full. */
	if (fd >= 0 && close(fd) && !err)
		err = -errno;
	if (!err && rename(unfinished, path))
		err = -errno;
	if (err && fd >= 0)
		unlink(unfinished);
	free(path);
	free(unfinished);
	return err;
}
