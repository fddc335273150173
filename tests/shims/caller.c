// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for nhmtap when the tests run it as another user: becomes that user and executes
 * PROGRAM, with the same pid and parent. It is linked statically, so that what a test preloads
 * affects only nhmtap. CALLER is "lent" for nobody, or "rootless" for root of a user namespace of
 * its own. A caller that is not root already is left as it is.
 */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOBODY 65534

static int write_line(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = strlen(line);

	return fd < 0 || write(fd, line, length) != length || close(fd);
}

static int become_nobody(void)
{
	return setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY);
}

/* As unshare -Ur does. */
static int become_root_of_another(void)
{
	return unshare(CLONE_NEWUSER) || write_line("/proc/self/setgroups", "deny") ||
	       write_line("/proc/self/uid_map", "0 0 1") || write_line("/proc/self/gid_map", "0 0 1");
}

/* Whether this is root of the initial user namespace. */
static int is_root(void)
{
	char map[64] = "";
	unsigned int inside, outside, length;
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, map, sizeof(map) - 1) < 0)
			map[0] = '\0';
		close(fd);
	}
	return !geteuid() && sscanf(map, "%u %u %u", &inside, &outside, &length) == 3 && length == ~0U;
}

int main(int argc, char **argv)
{
	if (is_root() && (strcmp(CALLER, "lent") ? become_root_of_another() : become_nobody())) {
		perror("caller: can't become another user");
		return 125;
	}
	execv(PROGRAM, argv);
	perror("caller: " PROGRAM);
	return 126;
}
