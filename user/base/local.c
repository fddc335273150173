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
#include <sys/types.h>
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

static bool is_of_magic(int fd, unsigned int *magic)
{
	struct statfs about;

	if (fstatfs(fd, &about))
		return false;
	*magic = about.f_type;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (*magic == kinds[i].magic)
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

/* The line of this mount in a process's mountinfo: proc_pid_mountinfo(5). 0: this process. The caller frees
 * it. NULL: there is none. */
static char *line_of(int mount, pid_t pid)
{
	char path[64], *line = NULL;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid ? (int)pid : (int)getpid());
	file = mount < 0 ? NULL : fopen(path, "re");
	while (file && getline(&line, &size, file) > 0)
		if (atoi(line) == mount) {
			fclose(file);
			return line;
		}
	free(line);
	if (file)
		fclose(file);
	return NULL;
}

/* --- layers of an overlay --------------------------------------------------------------------- */

typedef bool (*layer_fn)(const char *path);

/* Takes the next path from a list of layers, whose octal numbers and backslashes it removes. */
static const char *next_layer(const char *at, char *path, size_t size)
{
	unsigned int character;
	size_t used = 0;

	for (; *at && !strchr(":, \n", *at) && used < size - 1; used++)
		if (sscanf(at, "\\%3o", &character) == 1) {
			path[used] = character;
			at += 4;
		} else {
			at += *at == '\\' && at[1];
			path[used] = *at++;
		}
	path[used] = '\0';
	return at + (*at == ':') + (*at == ':' && at[1] == ':');
}

/* Whether no layer is known to have a server behind it. Those that can't be found, such as the layers of a
 * container whose folders are hidden here, are taken for local ones. */
static bool layers_are_local(const char *line, layer_fn is_local)
{
	static const char *const options[] = {",lowerdir=", ",lowerdir+=", ",datadir+=", ",upperdir="};
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		for (const char *at = line; (at = strstr(at, options[i]));) {
			at += strlen(options[i]);
			while (*at == '/') {
				at = next_layer(at, path, sizeof(path));
				if (!is_local(path))
					return false;
			}
		}
	return true;
}

static bool layer_is_local(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	unsigned int magic;
	bool local = fd < 0 || is_of_magic(fd, &magic);

	if (fd >= 0)
		close(fd);
	return local;
}

/* --- files ------------------------------------------------------------------------------------ */

bool local_is(int fd, pid_t pid)
{
	unsigned int magic;
	char *line;
	bool local;

	if (!is_of_magic(fd, &magic))
		return false;
	if (magic != OVERLAYFS_SUPER_MAGIC)
		return true;
	line = line_of(mount_of(fd), 0);
	if (!line && pid)
		line = line_of(mount_of(fd), pid);
	local = !line || layers_are_local(line, layer_is_local);
	free(line);
	return local;
}

static bool layer_is_known(const char *path);

/* Looks for the type in a line of mountinfo. */
static bool is_of_kind(const char *line)
{
	const char *behind = strstr(line, " - ");
	char type[32];

	if (!behind || sscanf(behind, " - %31s", type) != 1)
		return false;
	if (!strcmp(type, "overlay") && !layers_are_local(line, layer_is_known))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(type, kinds[i].name))
			return true;
	return false;
}

bool local_is_known(int fd)
{
	char *line = line_of(mount_of(fd), 0);
	bool local = line && is_of_kind(line);

	free(line);
	return local;
}

static int open_cached(const char *path, __u64 flags)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags, .resolve = RESOLVE_CACHED};

	return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

static bool layer_is_known(const char *path)
{
	int fd = open_cached(path, O_DIRECTORY);
	bool local = fd < 0 ? errno != EAGAIN : local_is_known(fd);

	if (fd >= 0)
		close(fd);
	return local;
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
	fd = open_cached(path, 0);
	if (fd < 0) {
		snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
			 slash ? path : ".");
		fd = open_cached(folder, O_DIRECTORY);
		local = fd >= 0 && local_is_known(fd) && is_plain(fd, name);
	} else {
		local = local_is_known(fd);
	}
	if (fd >= 0)
		close(fd);
	return local;
}
