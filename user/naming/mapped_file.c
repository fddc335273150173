// SPDX-License-Identifier: GPL-2.0-only
#include "naming/mapped_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/guarded.h"
#include "base/hex.h"
#include "base/map.h"
#include "base/memory.h"
#include "host/processes.h"
#include "naming/foreign.h"

/* --- roots ------------------------------------------------------------------------------------ */

/* A mount namespace and a folder in it. */
struct root {
	struct mapped_files *files;
	size_t users;
	pid_t pid; /* the process that was last seen to have it */
	ino_t mounts;
	dev_t device;
	ino_t inode;
	int fd;	 /* descriptor of the folder; -1 for our own root */
	int pin; /* descriptor of the namespace, which keeps its mounts; -1 for our own root */
	struct root *next;
};

struct mapped_files {
	struct root *roots;
	struct root ours; /* this process's; inode 0: not known yet */
	size_t nr_held;
	size_t bytes;	  /* memory of all files */
	struct map known; /* struct mapped_file by path and root */
	bool by_name;	  /* see mapped_files_by_name() */
	/* The last memfd that was looked at and is no program: code made at run time has many mappings of
	 * one. */
	__u64 memory_device, memory_inode;
};

struct mapped_files *mapped_files_new(void)
{
	return xcalloc(1, sizeof(struct mapped_files));
}

struct mapped_files *mapped_files_by_name(void)
{
	struct mapped_files *files = mapped_files_new();

	files->by_name = true;
	return files;
}

void mapped_files_release(struct mapped_files *files)
{
	map_release(&files->known);
	free(files);
}

static bool identify_root(pid_t pid, struct root *root)
{
	char path[64];
	struct stat mounts, folder;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)proc_living(pid));
	if (stat(path, &mounts))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)proc_living(pid));
	if (!foreign_known_link(path, &folder))
		return false;
	*root = (struct root){.pid = pid,
			      .mounts = mounts.st_ino,
			      .device = folder.st_dev,
			      .inode = folder.st_ino,
			      .fd = -1,
			      .pin = -1};
	return true;
}

static bool same_root(const struct root *a, const struct root *b)
{
	return a->mounts == b->mounts && a->device == b->device && a->inode == b->inode;
}

static bool is_ours(struct mapped_files *files, const struct root *root)
{
	if (!files->ours.inode)
		identify_root(getpid(), &files->ours);
	return same_root(root, &files->ours);
}

struct root *root_of(struct mapped_files *files, pid_t pid)
{
	struct root found, *root;
	char path[64];

	if (!identify_root(pid, &found))
		return NULL;
	for (root = files->roots; root; root = root->next)
		if (same_root(root, &found)) {
			root->pid = pid;
			return root_get(root);
		}
	if (!is_ours(files, &found)) {
		snprintf(path, sizeof(path), "/proc/%d/root", (int)proc_living(pid));
		found.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (found.fd < 0)
			return NULL;
		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)proc_living(pid));
		found.pin = open(path, O_RDONLY | O_CLOEXEC);
	}
	root = xmalloc(sizeof(*root));
	*root = found;
	root->files = files;
	root->users = 1;
	root->next = files->roots;
	files->roots = root;
	return root;
}

struct root *root_get(struct root *root)
{
	if (root)
		root->users++;
	return root;
}

void root_put(struct root *root)
{
	struct root **at;

	if (!root || --root->users)
		return;
	at = &root->files->roots;
	while (*at != root)
		at = &(*at)->next;
	*at = root->next;
	if (root->fd >= 0)
		close(root->fd);
	if (root->pin >= 0)
		close(root->pin);
	free(root);
}

const char *root_path(const struct root *root, const char *path, char *text, size_t size)
{
	struct root now;
	int length;

	if (!root)
		return NULL;
	if (is_ours(root->files, root))
		length = snprintf(text, size, "%s", path);
	else if (identify_root(root->pid, &now) && same_root(root, &now))
		length = snprintf(text, size, "/proc/%d/root%s", (int)proc_living(root->pid), path);
	else
		length = snprintf(text, size, "/proc/self/fd/%d%s", root->fd, path);
	return length < (int)size ? text : NULL;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The most descriptors that files may keep open: the run needs others. Files beyond that are opened by their
 * paths when they are needed. */
#define HELD_MOST 512

static bool may_hold(const struct mapped_files *files)
{
	struct rlimit limit;

	return files->nr_held < HELD_MOST && !getrlimit(RLIMIT_NOFILE, &limit) &&
	       files->nr_held < limit.rlim_cur / 4;
}

/* Asks for a descriptor to keep and the build-id. */
static int hold_file(const struct sighting *sighting, const char *folder, const char *path, __u64 resolve,
		     struct foreign_answer *answer)
{
	/* The kernel says what is mapped, so any owner is accepted. */
	return foreign_ask(
		&(struct foreign_question){.want = FOREIGN_HOLD,
					   .folder = folder,
					   .path = path,
					   .resolve = resolve,
					   .guard = {.whose = GUARD_ANYBODY, .most = GUARD_IMAGE_MOST},
					   .device = sighting->device,
					   .wait_ms = FOREIGN_SOON_MS},
		answer);
}

/* Opens a path below a root. Links can't lead out of the root. */
static int open_below(const struct sighting *sighting, const char *path, struct foreign_answer *answer)
{
	char folder[64] = "/";

	if (sighting->root->fd >= 0)
		snprintf(folder, sizeof(folder), "/proc/self/fd/%d", sighting->root->fd);
	return hold_file(sighting, folder, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS, answer);
}

static void map_files_path(const struct sighting *sighting, char *text, size_t size)
{
	snprintf(text, size, "/proc/%d/map_files/%llx-%llx", (int)proc_living(sighting->pid), sighting->begin,
		 sighting->end);
}

/* Opens the mapped file itself, wherever its path leads now. The process must still exist. */
static int open_mapped(const struct sighting *sighting, struct foreign_answer *answer)
{
	char path[96];

	map_files_path(sighting, path, sizeof(path));
	return hold_file(sighting, NULL, path, 0, answer);
}

void build_id_text(char text[BUILD_ID_TEXT], const __u8 *build_id, size_t size)
{
	const size_t most = (BUILD_ID_TEXT - 1) / 2;

	hex_text(text, build_id, size < most ? size : most);
}

/* Whether the file is the one that was mapped, as far as is known. */
static bool is_the_file(const struct foreign_answer *answer, const struct sighting *sighting)
{
	return sighting->build_id[0] ? !strcmp(answer->build_id, sighting->build_id)
				     : answer->stat.st_ino == sighting->inode;
}

/* Whether it is surely another one. Inodes say so only if the devices are the same: files of overlayfs are
 * mapped under the numbers of a layer. */
static bool is_another(const struct foreign_answer *answer, const struct sighting *sighting)
{
	if (sighting->build_id[0])
		return answer->build_id[0] && strcmp(answer->build_id, sighting->build_id);
	return sighting->inode && answer->stat.st_dev == sighting->device &&
	       answer->stat.st_ino != sighting->inode;
}

static void open_nothing(struct foreign_answer *answer)
{
	if (answer->fd >= 0)
		close(answer->fd);
	answer->fd = -1;
	answer->build_id[0] = '\0';
}

/* Sets answer->fd to -1 if the file can't be opened. By the time a note is read, the process may have closed
 * the library and mapped another one at its addresses. */
static void open_sighted(const struct sighting *sighting, struct foreign_answer *answer)
{
	int err = open_mapped(sighting, answer);

	if (!err && !is_another(answer, sighting))
		return;
	if (err)
		answer->fd = -1;
	open_nothing(answer);
	if (err == ETIMEDOUT || !sighting->root || open_below(sighting, sighting->path, answer))
		return;
	if (!is_the_file(answer, sighting))
		open_nothing(answer);
}

/* --- the files -------------------------------------------------------------------------------- */

static __u64 key_of(const char *path, const struct root *root)
{
	return map_key(path, (uintptr_t)root);
}

static enum file_kind kind_of(const char *path)
{
	/* Memory without a file has several names: mm/mmap.c, kernel/events/core.c. */
	static const char *const anonymous[] = {"//anon",  "[heap]",	"[stack", "[anon",
						"/memfd:", "/dev/zero", "/SYSV",  "/anon_hugepage"};

	if (!strcmp(path, "[vdso]"))
		return FILE_VDSO;
	for (size_t i = 0; i < ARRAY_SIZE(anonymous); i++)
		if (!strncmp(path, anonymous[i], strlen(anonymous[i])))
			return FILE_ANONYMOUS;
	return path[0] == '/' || !strncmp(path, "[vdso", 5) ? FILE_REGULAR : FILE_ANONYMOUS;
}

static struct mapped_file *find_file(struct mapped_files *files, const struct sighting *sighting,
				     const char *build_id)
{
	__u64 key = key_of(sighting->path, sighting->root);
	struct mapped_file *file;

	for (size_t at = 0; (file = map_find_next(&files->known, key, &at));) {
		if (strcmp(file->path, sighting->path) || file->root != sighting->root)
			continue;
		if (build_id[0] ? !strcmp(file->build_id, build_id)
				: file->inode == sighting->inode && file->device == sighting->device &&
					  (file->inode || !file->build_id[0]))
			return file;
	}
	return NULL;
}

static size_t bytes_of(const struct mapped_file *file)
{
	return sizeof(*file) + strlen(file->path) + 1;
}

size_t mapped_files_bytes(const struct mapped_files *files)
{
	return files->bytes;
}

/* Adds a file. The caller gets a reference. */
static struct mapped_file *add_file(struct mapped_files *files, const struct sighting *sighting,
				    const char *build_id, int fd, bool readable)
{
	struct mapped_file *file = xcalloc(1, sizeof(*file));

	*file = (struct mapped_file){
		.path = xstrdup(sighting->path),
		.kind = build_id[0] ? FILE_REGULAR : kind_of(sighting->path),
		.files = files,
		.users = 1,
		.root = root_get(sighting->root),
		.fd = fd,
		.readable = readable,
		.device = sighting->device,
		.inode = sighting->inode,
	};
	snprintf(file->build_id, sizeof(file->build_id), "%s", build_id);
	files->nr_held += fd >= 0;
	files->bytes += bytes_of(file);
	map_put(&files->known, key_of(file->path, file->root), file);
	return file;
}

/* Returns the file that all mappings of this kind share. */
static struct mapped_file *get_special(struct mapped_files *files, enum file_kind kind)
{
	const struct sighting special = {.path = kind == FILE_VDSO ? "[vdso]" : "[anon]", .build_id = ""};
	struct mapped_file *file = find_file(files, &special, "");

	return file ? mapped_file_again(file) : add_file(files, &special, "", -1, false);
}

/* --- the vdso of 32-bit processes -------------------------------------------------------------- */

#define LOW_END (1ULL << 32)

/* Copies the vdso of a process to a file in memory. Returns its descriptor, or -1. */
static int copy_vdso(const struct sighting *sighting)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)proc_living(sighting->pid));
	return foreign_open_as(&(struct foreign_question){.want = FOREIGN_COPY,
							  .path = path,
							  .guard = {.whose = GUARD_ANYBODY},
							  .from = sighting->begin,
							  .size = sighting->end - sighting->begin,
							  .wait_ms = FOREIGN_SOON_MS},
			       NULL);
}

/* i386 or x32: both are mapped below 4 GiB, and both are ELF files of 32 bits. */
static const char *low_vdso_name(int fd)
{
	Elf32_Ehdr header;

	if (fd >= 0 && pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	    header.e_machine == EM_X86_64)
		return "[vdsox32]";
	return "[vdso32]";
}

/* Returns the file of a vdso that differs from this process's. It is called as perf calls it. Each kind is
 * kept from the first process that it can be read from. */
static struct mapped_file *get_low_vdso(struct mapped_files *files, const struct sighting *sighting)
{
	int fd = copy_vdso(sighting);
	const struct sighting special = {.path = low_vdso_name(fd), .build_id = ""};
	struct mapped_file *file = find_file(files, &special, "");

	if (!file)
		return add_file(files, &special, "", fd, true);
	if (file->fd < 0) {
		file->fd = fd;
		file->readable = true;
		files->nr_held += fd >= 0;
	} else if (fd >= 0) {
		close(fd);
	}
	return mapped_file_again(file);
}

static bool is_low_vdso(const struct sighting *sighting)
{
	return kind_of(sighting->path) == FILE_VDSO && sighting->end <= LOW_END;
}

#define DELETED " (deleted)" /* d_path(), fs/d_path.c */

/* The file of this name alone. */
static struct mapped_file *get_by_name(struct mapped_files *files, const char *path)
{
	char name[PATH_MAX];
	struct sighting named = {.path = name, .build_id = ""};
	struct mapped_file *file;
	size_t length = strlen(path), tail = strlen(DELETED);

	if (length > tail && !strcmp(path + length - tail, DELETED))
		length -= tail;
	snprintf(name, sizeof(name), "%.*s", (int)length, strcmp(path, "//anon") ? path : "[anon]");
	file = find_file(files, &named, "");
	if (file)
		return mapped_file_again(file);
	file = add_file(files, &named, "", -1, false);
	file->kind = FILE_REGULAR;
	return file;
}

struct mapped_file *mapped_file_known(struct mapped_files *files, const struct sighting *sighting)
{
	struct mapped_file *file;

	if (files->by_name)
		return get_by_name(files, sighting->path);
	if (is_low_vdso(sighting))
		return NULL;
	if (kind_of(sighting->path) == FILE_VDSO)
		return get_special(files, FILE_VDSO);
	file = sighting->build_id[0] ? find_file(files, sighting, sighting->build_id) : NULL;
	return file ? mapped_file_again(file) : NULL;
}

static struct mapped_file *get_regular(struct mapped_files *files, const struct sighting *sighting)
{
	struct mapped_file *file = find_file(files, sighting, sighting->build_id);
	const char *build_id = sighting->build_id;
	struct foreign_answer answer = {.fd = -1};

	if (file)
		return mapped_file_again(file);
	open_sighted(sighting, &answer);
	if (!build_id[0])
		build_id = answer.build_id;
	file = build_id[0] ? find_file(files, sighting, build_id) : NULL;
	if (answer.fd >= 0 && (file || !may_hold(files))) {
		close(answer.fd);
		answer.fd = -1;
	}
	if (!file) {
		file = add_file(files, sighting, build_id, answer.fd, answer.local);
		file->filesystem = sighting->device ? sighting->device : answer.stat.st_dev;
		return file;
	}
	if (sighting->inode) { /* so that it is found without opening it next time */
		file->inode = sighting->inode;
		file->device = sighting->device;
	}
	return mapped_file_again(file);
}

/* Some programs execute themselves from a memfd. What has a build-id is an ELF file; the kernel's notes say
 * so, and /proc/PID/maps does not. Otherwise it is memory for code that is made at run time. Sets build_id,
 * "" if there is none. */
static void look_at_memory(struct mapped_files *files, const struct sighting *sighting, char *build_id)
{
	struct foreign_answer answer = {.fd = -1};

	build_id[0] = '\0';
	if (strncmp(sighting->path, "/memfd:", 7) || !sighting->inode ||
	    (files->memory_inode == sighting->inode && files->memory_device == sighting->device))
		return;
	open_sighted(sighting, &answer);
	if (answer.fd >= 0)
		close(answer.fd);
	snprintf(build_id, BUILD_ID_TEXT, "%s", answer.build_id);
	if (build_id[0])
		return;
	files->memory_device = sighting->device;
	files->memory_inode = sighting->inode;
}

/* Whether a path that ends like this is the file's own name, because this very file is there. */
static bool is_named_so(const struct sighting *sighting)
{
	char there[PATH_MAX + 64], mapped[96];
	struct stat found, wanted = {.st_ino = sighting->inode};

	if (!root_path(sighting->root, sighting->path, there, sizeof(there)) ||
	    !foreign_stat(there, sighting->device, FOREIGN_SOON_MS, &found))
		return false;
	map_files_path(sighting, mapped, sizeof(mapped));
	if (!wanted.st_ino && !foreign_stat(mapped, found.st_dev, FOREIGN_SOON_MS, &wanted))
		return true; /* the process has ended */
	return found.st_ino == wanted.st_ino;
}

struct mapped_file *mapped_file_get(struct mapped_files *files, const struct sighting *sighting)
{
	enum file_kind kind = kind_of(sighting->path);
	size_t length = strlen(sighting->path), tail = strlen(DELETED);
	struct sighting there = *sighting;
	char path[PATH_MAX + sizeof(DELETED)], build_id[BUILD_ID_TEXT];

	if (is_low_vdso(sighting))
		return get_low_vdso(files, sighting);
	if (kind == FILE_ANONYMOUS && !sighting->build_id[0]) {
		look_at_memory(files, sighting, build_id);
		there.build_id = build_id;
	}
	if (kind == FILE_VDSO || (kind == FILE_ANONYMOUS && !there.build_id[0]))
		return get_special(files, kind);
	if (length > tail && length < sizeof(path) && !strcmp(sighting->path + length - tail, DELETED) &&
	    !is_named_so(sighting)) {
		snprintf(path, sizeof(path), "%.*s", (int)(length - tail), sighting->path);
		there.path = path;
	}
	return get_regular(files, &there);
}

struct mapped_file *mapped_file_again(struct mapped_file *file)
{
	file->users++;
	return file;
}

void mapped_file_put(struct mapped_file *file)
{
	if (!file || --file->users)
		return;
	map_remove(&file->files->known, key_of(file->path, file->root), file);
	if (file->fd >= 0) {
		close(file->fd);
		file->files->nr_held--;
	}
	file->files->bytes -= bytes_of(file);
	root_put(file->root);
	free((char *)file->path);
	free(file);
}

/* Whether the path leads to the file that is kept open. If it is not, the inode is compared; with a build-id,
 * whoever opens the path must compare that. */
static bool leads_to(const char *path, const struct mapped_file *file)
{
	struct stat there, held;

	if (!foreign_stat(path, file->filesystem, FOREIGN_SOON_MS, &there) || !S_ISREG(there.st_mode))
		return false;
	if (file->fd < 0)
		return file->build_id[0] || there.st_ino == file->inode;
	return foreign_known(file->fd, &held) && there.st_dev == held.st_dev && there.st_ino == held.st_ino;
}

const char *mapped_file_path(const struct mapped_file *file, char *text, size_t size)
{
	if (file->kind == FILE_VDSO)
		return "[vdso]";
	if (file->kind != FILE_REGULAR)
		return NULL;
	if (root_path(file->root, file->path, text, size) && leads_to(text, file))
		return text;
	if (file->fd < 0)
		return NULL;
	snprintf(text, size, "/proc/self/fd/%d", file->fd);
	return text;
}
