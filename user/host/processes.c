// SPDX-License-Identifier: GPL-2.0-only
#include "host/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/apart.h"
#include "base/clock.h"

#define INITIAL_INODE 0xeffffffcU /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

struct pid_namespace pid_namespace(void)
{
	struct pid_namespace namespace = {0};
	struct stat stat_of;

	if (stat("/proc/self/ns/pid", &stat_of))
		return namespace;
	namespace.device = stat_of.st_dev;
	namespace.inode = stat_of.st_ino;
	namespace.initial = namespace.inode == INITIAL_INODE;
	return namespace;
}

/* Copies what follows a line's name in a file. Returns false if there is no such line. */
static bool read_line(const char *path, const char *name, char *value, size_t size)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0, length = strlen(name);
	bool found = false;

	while (file && !found && getline(&line, &room, file) > 0) {
		found = !strncmp(line, name, length);
		if (found)
			snprintf(value, size, "%s", line + length);
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

__u64 proc_forks(void)
{
	char number[32];

	if (!read_line("/proc/stat", "processes ", number, sizeof(number)))
		return 0;
	return strtoull(number, NULL, 10) - apart_started();
}

/* Whether /proc belongs to this process's namespace. NSpid lists a process's numbers from the namespace of
 * /proc down to its own: proc(5). */
static bool check_proc(void)
{
	char numbers[512];
	long first, second;

	/* Kernels before 4.1, or without namespaces, have no such line. */
	if (!read_line("/proc/self/status", "NSpid:", numbers, sizeof(numbers)))
		return !access("/proc/self", F_OK);
	return sscanf(numbers, "%ld %ld", &first, &second) == 1;
}

bool proc_is_ours(void)
{
	static int ours = -1; /* neither a process's namespace nor its /proc changes */

	if (ours < 0)
		ours = check_proc();
	return ours;
}

pid_t proc_number(pid_t pid)
{
	char path[64], number[32];
	bool found;
	int fd;

	if (pid <= 0)
		return 0;
	if (proc_is_ours())
		return pid;
	fd = syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	found = read_line(path, "Pid:", number, sizeof(number));
	close(fd);
	return found && atoi(number) > 0 ? atoi(number) : 0;
}

/* Without the permission to look, it is taken to be alive. */
static bool has_root(pid_t number)
{
	char path[64], root[2];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)number);
	return readlink(path, root, sizeof(root)) >= 0 || errno != ENOENT;
}

bool proc_is_zombie(pid_t tid)
{
	pid_t number = proc_number(tid);

	return number && !has_root(number);
}

/* /proc/TID has all that /proc/PID has, though /proc does not list it. */
pid_t proc_living(pid_t pid)
{
	pid_t number = proc_number(pid), living = 0;
	struct dirent *entry;
	char path[64];
	DIR *threads;

	if (!number || has_root(number))
		return number;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)number);
	threads = opendir(path);
	while (threads && !living && (entry = readdir(threads)))
		if (isdigit((unsigned char)entry->d_name[0]) && has_root(atoi(entry->d_name)))
			living = atoi(entry->d_name);
	if (threads)
		closedir(threads);
	return living ? living : number;
}

bool proc_is_there(pid_t id, bool thread)
{
	pid_t number = thread ? proc_number(id) : proc_living(id);

	return number && has_root(number);
}

bool proc_status(pid_t pid, const char *name, char *value, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)proc_number(pid));
	return read_line(path, name, value, size);
}

time_t proc_began(pid_t pid)
{
	char path[64], text[1024];
	unsigned long long ticks;
	const char *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)proc_number(pid));
	file = fopen(path, "re");
	if (!file)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	name_end = strrchr(text, ')'); /* the name may have blanks: proc(5), starttime */
	if (!name_end || sscanf(name_end,
				") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
				"%*d %*d %*d %llu",
				&ticks) != 1)
		return 0;
	return (clock_lead(CLOCK_BOOTTIME).ns + ticks * (1000000000ULL / sysconf(_SC_CLK_TCK))) / 1000000000;
}
