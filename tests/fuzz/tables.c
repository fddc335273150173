// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes folders of events: the first byte picks the file that the rest is written to, in the folder that
 * NHMTAP_FUZZ_FOLDER names. No crash, no leak, and either tables or a refusal that says something.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tables/tables.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const char *folder;
static const char *const files[] = {
	"nehalem-ep/mine.json",
	"nehalem-ep/metrics.json",
	"nehalem-ep/offcore.json",
	"nehalem-ep/branches.json",
	"nehalem-ep/kernel.json",
	"generic/metrics.json",
	"cpus.json",
	"sources.json",
};
#define FILES (sizeof(files) / sizeof(files[0]))

static void path_of(char *path, size_t size, const char *file)
{
	snprintf(path, size, "%s/%s", folder, file);
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
	for (size_t i = 0; i < FILES; i++) {
		path_of(path, sizeof(path), files[i]);
		unlink(path);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct refusal refusal = {0};
	struct tables tables = {0};
	char path[4096];
	int fd;

	if (!size)
		return 0;
	path_of(path, sizeof(path), files[data[0] % FILES]);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)size - 1)
		abort();
	close(fd);
	if (tables_load(&tables, folder, &refusal) && (!refusal.asked[0] || !refusal.why[0]))
		abort();
	tables_release(&tables);
	unlink(path);
	return 0;
}
