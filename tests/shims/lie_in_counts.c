// SPDX-License-Identifier: GPL-2.0-only
/* To be preloaded: a PMU that lies. What is read from an event has its count multiplied by LIE, a real
 * number: 0 for a counter that stands still. The times stay as they are. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_event(int fd)
{
	char path[64], target[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	return !strcmp(target, "anon_inode:[perf_event]");
}

ssize_t read(int fd, void *buffer, size_t size)
{
	static ssize_t (*unchanged)(int, void *, size_t);
	const char *lie = getenv("LIE");
	unsigned long long value;
	ssize_t got;

	if (!unchanged)
		unchanged = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	got = unchanged(fd, buffer, size);
	if (!lie || got < (ssize_t)sizeof(value) || !is_event(fd))
		return got;
	memcpy(&value, buffer, sizeof(value));
	value = value * strtod(lie, NULL);
	memcpy(buffer, &value, sizeof(value));
	return got;
}
