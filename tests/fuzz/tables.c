// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes folders of events. The input is files, with a line "=" between them; the first byte of each picks
 * the place where the rest is written, in the folder that NHMTAP_FUZZ_FOLDER names. No crash, no leak, and
 * either tables or a refusal that says something.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tables/form.h"
#include "tables/tables.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char *folder;
/* From '0' on. Each CPU of cpus.json needs a folder: one of this name can be changed, or made anew. */
static const char *const files[] = {
	"cpus.json",
	"sources.json",
	"nehalem-ep/mine.json",
	"nehalem-ep/contradictions.json",
	"nehalem-ep/data_source.json",
	"nehalem-ep/kernel.json",
	"nehalem-ep/lbr.json",
	"nehalem-ep/metrics.json",
	"nehalem-ep/msr.json",
	"nehalem-ep/offcore.json",
	"generic/metrics.json",
};
#define FILES	  (sizeof(files) / sizeof(files[0]))
#define SEPARATOR "\n=\n"

static void path_of(char *path, size_t size, const char *file)
{
	snprintf(path, size, "%s/%s", folder, file);
}

static void write_file(size_t i, const unsigned char *data, size_t size)
{
	char path[4096];
	int fd;

	path_of(path, sizeof(path), files[i]);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static void remove_file(size_t i)
{
	char path[4096];

	path_of(path, sizeof(path), files[i]);
	unlink(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char path[4096];

	folder = getenv("NHMTAP_FUZZ_FOLDER");
	if (!folder)
		abort();
	mkdir(folder, 0700);
	for (size_t i = 0; i < 2; i++) {
		path_of(path, sizeof(path), i ? "generic" : "nehalem-ep");
		mkdir(path, 0700);
	}
	for (size_t i = 0; i < FILES; i++)
		remove_file(i);
	form_open(); /* kept: to read it for each input takes longer than all else */
	return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const unsigned char *end = data + size, *next;
	struct refusal refusal = {0};
	struct tables tables = {0};
	bool written[FILES] = {0};

	for (; data < end; data = next) {
		size_t i = (unsigned char)(*data - '0') % FILES;
		const unsigned char *last = memmem(data, end - data, SEPARATOR, strlen(SEPARATOR));

		next = last ? last + strlen(SEPARATOR) : end;
		write_file(i, data + 1, (last ? last : end) - data - 1);
		written[i] = true;
	}
	if (tables_load(&tables, folder, &refusal) && (!refusal.asked[0] || !refusal.why[0]))
		abort();
	tables_release(&tables);
	for (size_t i = 0; i < FILES; i++)
		if (written[i])
			remove_file(i);
	return 0;
}
