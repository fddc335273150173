/* SPDX-License-Identifier: GPL-2.0-only */
/* An input that is also each file that it refers to. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "confined/read_file.h"

#define MEMORY (64UL << 20)

static struct input {
	const unsigned char *data;
	size_t size;
	int fd; /* a file with the input, created at the first request for one; else -1 */
} input;

/* The input is also its own debug file, alternate debug file and file of split DWARF. An input of odd size
 * has no debug file under its build-id. */
static int open_itself(bool ours, const char *path)
{
	if (input.size % 2 && strstr(path, "/.build-id/"))
		return -1;
	if (input.fd < 0) {
		input.fd = memfd_create("input", MFD_CLOEXEC);
		if (input.fd < 0 || write(input.fd, input.data, input.size) != (ssize_t)input.size)
			abort();
	}
	return dup(input.fd);
}

/* Reads the input with its lines, data and types. Where it is a file: true, to be ended by end_itself(). */
static bool begin_itself(struct read_file *file, const unsigned char *data, size_t size)
{
	static const struct file_place place = {.path = "/nonexistent/file"};
	static const struct debug_folders folders = {&place, {"/nonexistent", "/nonexistent"}, open_itself};
	char *copy = malloc(size + 1);
	struct image image;

	input = (struct input){data, size, -1};
	memcpy(copy, data, size);
	if (image_from_memory(&image, copy, size))
		return false;
	read_file(file, &image,
		  &(struct read_what){.lines = true, .data = true, .types = true, .lines_most = MEMORY},
		  MEMORY, &folders);
	return true;
}

static void end_itself(struct read_file *file)
{
	read_file_release(file);
	if (input.fd >= 0)
		close(input.fd);
}
