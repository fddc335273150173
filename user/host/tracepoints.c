// SPDX-License-Identifier: GPL-2.0-only
#include "host/tracepoints.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/array.h"
#include "host/files.h"

/* Where tracefs is mounted, also on kernels before 4.1. */
static const char *const mounts[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

/* Whether a uprobe has this name: "p:GROUP/NAME PATH:OFFSET", "r:GROUP/NAME …" (trace/uprobetracer.rst). */
static bool is_uprobe(const struct host *host, const char *mount, const char *group, const char *name)
{
	char path[PATH_MAX], own[600], *line = NULL;
	bool found = false;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s%s/uprobe_events", host->root, mount);
	snprintf(own, sizeof(own), "%s/%s ", group, name);
	file = fopen(path, "re");
	while (file && !found && getline(&line, &room, file) > 0)
		found = line[0] && line[1] == ':' && !strncmp(line + 2, own, strlen(own));
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* perf_syscall_enter(), kernel/trace/trace_syscalls.c, and __uprobe_perf_func(), trace_uprobe.c, pass the
 * registers of the user's side. All others pass those of the kernel, raw_syscalls too: perf_trace_##call(),
 * include/trace/perf.h. */
static bool is_of_user(const struct host *host, const char *mount, const char *group, const char *name)
{
	return !strcmp(group, "syscalls") || is_uprobe(host, mount, group, name);
}

static bool find_in_group(const struct host *host, const char *mount, const char *group, __u64 id,
			  struct tracepoint *tracepoint)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "%s%s/events/%s", host->root, mount, group);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/events/%s/%s/id", mount, group, entry->d_name);
		found = slurp_number(host, path, -1) == (long)id;
		if (!found)
			continue;
		snprintf(tracepoint->name, sizeof(tracepoint->name), "%.100s:%.150s", group, entry->d_name);
		tracepoint->of_user = is_of_user(host, mount, group, entry->d_name);
	}
	if (folder)
		closedir(folder);
	return found;
}

static bool find_below(const struct host *host, const char *mount, __u64 id, struct tracepoint *tracepoint)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *groups;

	snprintf(path, sizeof(path), "%s%s/events", host->root, mount);
	groups = opendir(path);
	while (groups && !found && (entry = readdir(groups)))
		found = entry->d_name[0] != '.' && find_in_group(host, mount, entry->d_name, id, tracepoint);
	if (groups)
		closedir(groups);
	return found;
}

bool tracepoint_find(const struct host *host, __u64 id, struct tracepoint *tracepoint)
{
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
		if (find_below(host, mounts[i], id, tracepoint))
			return true;
	return false;
}
