// SPDX-License-Identifier: GPL-2.0-only
#include "base/local.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include <linux/openat2.h>

#include "base/array.h"

/* Its names in /proc/self/mountinfo, and what statfs(2) tells. */
static const struct {
	const char *name;
	unsigned int magic;
} kinds[] = {
	{"ext4", EXT4_SUPER_MAGIC},	{"ext3", EXT4_SUPER_MAGIC},
	{"ext2", EXT4_SUPER_MAGIC},	{"xfs", XFS_SUPER_MAGIC},
	{"btrfs", BTRFS_SUPER_MAGIC},	{"f2fs", F2FS_SUPER_MAGIC},
	{"bcachefs", 0xca451a4e},	{"zfs", 0x2fc12fc1},
	{"tmpfs", TMPFS_MAGIC},		{"devtmpfs", TMPFS_MAGIC},
	{"ramfs", RAMFS_MAGIC},		{"rootfs", RAMFS_MAGIC},
	{"hugetlbfs", HUGETLBFS_MAGIC}, {"overlay", OVERLAYFS_SUPER_MAGIC},
	{"squashfs", SQUASHFS_MAGIC},	{"erofs", EROFS_SUPER_MAGIC_V1},
	{"iso9660", ISOFS_SUPER_MAGIC}, {"vfat", MSDOS_SUPER_MAGIC},
	{"proc", PROC_SUPER_MAGIC},	{"sysfs", SYSFS_MAGIC},
	{"devpts", DEVPTS_SUPER_MAGIC},
};

bool local_is(int fd)
{
	struct statfs about;

	if (fstatfs(fd, &about))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((unsigned int)about.f_type == kinds[i].magic)
			return true;
	return false;
}

/* The number of the mount that a file was opened at; -1: not known. */
static int mount_of(int fd)
{
	char path[64], line[128];
	int number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && number < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "mnt_id: %d", &number);
	if (file)
		fclose(file);
	return number;
}

/* Looks for the type in a line of mountinfo: proc_pid_mountinfo(5). */
static bool is_of_kind(const char *line)
{
	const char *behind = strstr(line, " - ");
	char type[32];

	if (!behind || sscanf(behind, " - %31s", type) != 1)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(type, kinds[i].name))
			return true;
	return false;
}

bool local_is_known(int fd)
{
	int mount = mount_of(fd);
	FILE *file = mount < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	bool local = false;

	while (file && getline(&line, &size, file) > 0) {
		if (atoi(line) != mount)
			continue;
		local = is_of_kind(line);
		break;
	}
	free(line);
	if (file)
		fclose(file);
	return local;
}

static int find(const char *path, __u64 flags)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags, .resolve = RESOLVE_CACHED};

	return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* Whether a name in a local folder is that of a file there, or of none: neither a link nor a mount. */
static bool is_plain(int folder, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV};
	int fd = syscall(SYS_openat2, folder, name, &how, sizeof(how));
	struct stat stat;
	bool plain;

	if (fd < 0)
		return errno == ENOENT;
	plain = !fstat(fd, &stat) && !S_ISLNK(stat.st_mode);
	close(fd);
	return plain;
}

/* Descriptors and devices of this process: their paths are links that only it can follow. */
static bool is_own(const char *path)
{
	return !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
}

bool local_place(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX];
	bool local;
	int fd;

	if (is_own(path))
		return true;
	fd = find(path, 0);
	if (fd < 0) {
		snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
			 slash ? path : ".");
		fd = find(folder, O_DIRECTORY);
		local = fd >= 0 && local_is_known(fd) && is_plain(fd, name);
	} else {
		local = local_is_known(fd);
	}
	if (fd >= 0)
		close(fd);
	return local;
}
