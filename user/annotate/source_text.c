// SPDX-License-Identifier: GPL-2.0-only
#include "annotate/source_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "naming/debug_file.h"

/* Larger than sources that people write. */
#define SOURCE_MOST (16UL << 20)

struct source_file {
	char *path, *text, *why;
	const char **lines; /* in `text` */
	size_t nr;
};

struct source_texts {
	struct source_file *list;
	size_t nr;
};

struct source_texts *source_texts_new(void)
{
	return xcalloc(1, sizeof(struct source_texts));
}

void source_texts_release(struct source_texts *texts)
{
	for (size_t i = 0; i < texts->nr; i++) {
		free(texts->list[i].path);
		free(texts->list[i].text);
		free(texts->list[i].why);
		free(texts->list[i].lines);
	}
	free(texts->list);
	free(texts);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Lines of other systems end in CR LF. */
static void cut_lines(struct source_file *file)
{
	for (char *at = file->text; at && *at;) {
		char *end = strchr(at, '\n');

		*xappend(file->lines, file->nr) = at;
		if (end)
			end[end > at && end[-1] == '\r' ? -1 : 0] = '\0';
		at = end ? end + 1 : NULL;
	}
}

/* Reads the whole file. Returns whether it could. */
static bool read_all(struct source_file *file, int fd, size_t size)
{
	size_t used = 0;
	ssize_t got = 1;

	file->text = xmalloc(size + 1);
	while (used < size && (got = read(fd, file->text + used, size - used)) > 0)
		used += got;
	file->text[used] = '\0';
	return got >= 0;
}

/* A program may be anybody's and name any file, so only what all may read is shown, or what belongs to the
 * program's owner. */
static void read_source(struct source_file *file, const char *module)
{
	static struct file_place place;
	struct stat program = {0}, source;
	int fd;

	place_of_path(&place, module, NULL);
	if (stat(module, &program))
		program.st_uid = geteuid();
	fd = place_open_debug(&place, false, file->path, program.st_uid, "/usr/lib/debug");
	if (fd < 0) {
		file->why = xasprintf("the source file %s can't be read: %s", file->path,
				      errno == ENOENT ? "there is no such file" : strerror(errno));
		return;
	}
	if (fstat(fd, &source) || source.st_size > (off_t)SOURCE_MOST || !read_all(file, fd, source.st_size))
		file->why = xasprintf("the source file %s can't be read: it is too large", file->path);
	else if (program.st_mtime && source.st_mtime > program.st_mtime)
		file->why = xasprintf("the source file %s is newer than the program: its lines may be others",
				      file->path);
	close(fd);
	cut_lines(file);
}

static struct source_file *file_of(struct source_texts *texts, const char *module, const char *path)
{
	struct source_file *file;

	for (size_t i = 0; i < texts->nr; i++)
		if (!strcmp(texts->list[i].path, path))
			return &texts->list[i];
	file = xappend(texts->list, texts->nr);
	*file = (struct source_file){.path = xstrdup(path)};
	read_source(file, module);
	return file;
}

const char *source_text(struct source_texts *texts, const char *module, const char *file, unsigned int line,
			const char **why)
{
	struct source_file *found = file_of(texts, module, file);

	*why = found->why;
	return line && line <= found->nr ? found->lines[line - 1] : NULL;
}
