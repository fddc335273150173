/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An input of several files, with a line "=" between them. The first byte of each file picks its
 * place in the folder NHMTAP_FUZZ_FOLDER, counted from '0'.
 */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/types.h>

#define SEPARATOR "\n=\n"

struct files {
	const char *folder;
	const char *const *places; /* below the folder */
	size_t nr;
	__u64 written; /* one bit per place */
};

static inline const char *files_path(const struct files *files, const char *place)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", files->folder, place);
	return path;
}

/* Creates the folders, listed with parents first, and removes the files of an earlier run. */
static inline void files_open(struct files *files, const char *const *folders)
{
	files->folder = getenv("NHMTAP_FUZZ_FOLDER");
	if (!files->folder)
		abort();
	mkdir(files->folder, 0700);
	for (; *folders; folders++)
		mkdir(files_path(files, *folders), 0700);
	for (size_t i = 0; i < files->nr; i++)
		unlink(files_path(files, files->places[i]));
}

static inline void files_write(struct files *files, const unsigned char *data, size_t size)
{
	const unsigned char *end = data + size, *next;

	for (; data < end; data = next) {
		size_t i = (unsigned char)(*data - '0') % files->nr;
		const unsigned char *last = memmem(data, end - data, SEPARATOR, strlen(SEPARATOR));
		ssize_t length = (last ? last : end) - data - 1;
		int fd = open(files_path(files, files->places[i]), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC,
			      0600);

		if (fd < 0 || write(fd, data + 1, length) != length)
			abort();
		close(fd);
		files->written |= 1ULL << i;
		next = last ? last + strlen(SEPARATOR) : end;
	}
}

static inline void files_remove(struct files *files)
{
	for (size_t i = 0; i < files->nr; i++)
		if (files->written >> i & 1)
			unlink(files_path(files, files->places[i]));
	files->written = 0;
}
