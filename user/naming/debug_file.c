// SPDX-License-Identifier: GPL-2.0-only
#include "naming/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/openat2.h>
#include <zlib.h>

#include "base/array.h"
#include "naming/foreign.h"

/* --- opening ---------------------------------------------------------------------------------- */

void place_of_path(struct file_place *place, const char *path, const char *root)
{
	int pid = 0, at = 0;
	ssize_t length;

	place->direct[0] = '\0';
	if (sscanf(path, "/proc/%d/root%n", &pid, &at) == 1 && at && path[at] == '/') {
		snprintf(place->root, sizeof(place->root), "/proc/%d/root", pid);
		snprintf(place->path, sizeof(place->path), "%s", path + at);
		return;
	}
	at = 0;
	if (sscanf(path, "/proc/self/fd/%d%n", &pid, &at) == 1 && at &&
	    path[at] == '/') { /* below a folder that is held open */
		snprintf(place->root, sizeof(place->root), "%.*s", at, path);
		snprintf(place->path, sizeof(place->path), "%s", path + at);
		return;
	}
	at = 0;
	sscanf(path, "/proc/%d/map_files/%n", &pid, &at);
	if (!at)
		sscanf(path, "/proc/%d/exe%n", &pid, &at);
	if (!at) {
		snprintf(place->root, sizeof(place->root), "%s", root ? root : "");
		snprintf(place->path, sizeof(place->path), "%s", path);
		return;
	}
	snprintf(place->direct, sizeof(place->direct), "%s", path);
	snprintf(place->root, sizeof(place->root), "/proc/%d/root", pid);
	length = readlink(path, place->path, sizeof(place->path) - 1);
	place->path[length > 0 ? length : 0] = '\0';
}

static int open_in(const char *folder, const char *path, __u64 resolve, const struct guard *guard,
		   struct stat *stat)
{
	return foreign_open_as(&(struct foreign_question){.want = FOREIGN_READ,
							  .folder = folder,
							  .path = path,
							  .resolve = resolve,
							  .guard = *guard,
							  .wait_ms = FOREIGN_PATIENT_MS},
			       stat);
}

static int open_below(const char *root, const char *path, const struct guard *guard, struct stat *stat)
{
	return root[0] ? open_in(root, path, RESOLVE_IN_ROOT, guard, stat)
		       : open_in(NULL, path, 0, guard, stat);
}

int place_open(const struct file_place *place, struct stat *stat)
{
	static const struct guard image = {.whose = GUARD_ANYBODY, .most = GUARD_IMAGE_MOST};

	return place->direct[0] ? open_below("", place->direct, &image, stat)
				: open_below(place->root, place->path, &image, stat);
}

int place_open_map(const struct file_place *place, uid_t owner, __u64 most, struct stat *stat)
{
	const struct guard map = {.whose = GUARD_OWN_OR_SYSTEMS, .owner = owner, .most = most};
	const char *name = strrchr(place->path, '/');
	char folder[PATH_MAX];

	if (place->root[0])
		return open_in(place->root, place->path, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS, &map, stat);
	/* In our own root, the folder (/tmp) belongs to root, so links in its path are allowed. */
	snprintf(folder, sizeof(folder), "%.*s", name ? (int)(name - place->path + 1) : 1,
		 name ? place->path : ".");
	return open_in(folder, name ? name + 1 : place->path, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, &map,
		       stat);
}

static bool is_below(const char *folder, size_t length, const char *path)
{
	return length && !strncmp(path, folder, length) && path[length] == '/' && !strstr(path, "/../");
}

int place_open_debug(const struct file_place *place, bool ours, const char *path, uid_t owner,
		     const char *debug_dir)
{
	const char *name = strrchr(place->path, '/');
	bool may_be_own = is_below(place->path, name ? name - place->path : 0, path) ||
			  is_below(debug_dir, strlen(debug_dir), path);
	const struct guard guard = {.whose = GUARD_OWN_OR_PUBLIC,
				    .owner = may_be_own ? owner : (uid_t)-1,
				    .most = GUARD_IMAGE_MOST};

	return open_below(ours ? "" : place->root, path, &guard, NULL);
}

static bool open_image(struct image *debug, open_debug_fn open, bool ours, const char *path)
{
	int fd = open(ours, path);

	return fd >= 0 && !image_from_file(debug, fd);
}

/* --- debug files ------------------------------------------------------------------------------ */

static bool has_build_id(const struct image *image, const char *build_id)
{
	char own[2 * BUILD_ID_MAX + 1];

	image_build_id(image, own);
	return !strcmp(own, build_id);
}

/* Opens the image at a path in the file's own system or, if `anywhere`, in ours. Returns whether it is the
 * one with the build-id. */
static bool open_right(struct image *image, const char *path, const char *build_id,
		       const struct file_place *place, bool anywhere, open_debug_fn open)
{
	for (int ours = !place->root[0]; ours <= (anywhere || !place->root[0]); ours++) {
		if (!open_image(image, open, ours, path))
			continue;
		if (has_build_id(image, build_id))
			return true;
		image_close(image);
	}
	return false;
}

/* Tries what debuginfod's client, which gdb and perf use, has fetched for us: debuginfod_find_debuginfo(3).
 */
static bool open_fetched(struct image *debug, const char *build_id, const char *fetched_dir,
			 open_debug_fn open)
{
	char path[2 * PATH_MAX];

	if (!fetched_dir[0])
		return false;
	snprintf(path, sizeof(path), "%s/%s/debuginfo", fetched_dir, build_id);
	if (!open_image(debug, open, true, path))
		return false;
	if (has_build_id(debug, build_id))
		return true;
	image_close(debug);
	return false;
}

/* Tries debug_dir/.build-id/ab/cdef….debug, in the file's own system and then in ours. */
static bool open_by_build_id(struct image *debug, const char *build_id, const struct file_place *place,
			     const struct debug_dirs *dirs, open_debug_fn open)
{
	char path[2 * PATH_MAX];

	if (strlen(build_id) < 4)
		return false;
	snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", dirs->debug, build_id, build_id + 2);
	return open_right(debug, path, build_id, place, true, open) ||
	       open_fetched(debug, build_id, dirs->fetched, open);
}

#define SUMMED_MOST (1ULL << 30)

/* Whether the file has the checksum of a .gnu_debuglink, which is zlib's CRC-32. */
static bool has_checksum(const struct image *image, __u32 expected)
{
	unsigned char piece[65536];
	uLong sum = crc32(0, NULL, 0);
	off_t at = 0;

	if (image->size > SUMMED_MOST)
		return false;
	for (ssize_t got; (got = pread(image->fd, piece, sizeof(piece), at)) > 0; at += got)
		sum = crc32(sum, piece, got);
	return sum == expected;
}

/* Reads .gnu_debuglink: a name with a zero byte, then the checksum, aligned to four bytes. */
static char *debug_link(const struct image *of, __u32 *checksum)
{
	GElf_Shdr header;
	size_t at;
	char *link;

	if (!image_section(of, ".gnu_debuglink", &header))
		return NULL;
	link = image_read_section(of, &header, PATH_MAX);
	if (!link)
		return NULL;
	at = (strnlen(link, header.sh_size) + 4) & -4UL;
	if (link[0] && at + sizeof(*checksum) <= header.sh_size && !strchr(link, '/')) {
		memcpy(checksum, link + at, sizeof(*checksum));
		return link;
	}
	free(link);
	return NULL;
}

static bool open_by_link(struct image *debug, const struct image *of, const char *build_id,
			 const struct file_place *place, const struct debug_dirs *dirs, open_debug_fn open)
{
	int length = strrchr(place->path, '/') ? strrchr(place->path, '/') - place->path : 0;
	char paths[3][3 * PATH_MAX];
	__u32 checksum;
	char *link = debug_link(of, &checksum);

	if (!link)
		return false;
	if (strchr(place->path, '/'))
		length++;
	snprintf(paths[0], sizeof(paths[0]), "%.*s%s", length, place->path, link);
	snprintf(paths[1], sizeof(paths[1]), "%.*s.debug/%s", length, place->path, link);
	snprintf(paths[2], sizeof(paths[2]), "%s/%.*s%s", dirs->debug, length, place->path, link);
	free(link);
	for (int i = 0; i < 3; i++) {
		if (!open_image(debug, open, !place->root[0], paths[i]))
			continue;
		if ((build_id[0] && has_build_id(debug, build_id)) || has_checksum(debug, checksum))
			return true;
		image_close(debug);
	}
	return false;
}

bool debug_file_open(struct image *debug, const struct image *of, const struct file_place *place,
		     const struct debug_dirs *dirs, open_debug_fn open)
{
	char build_id[2 * BUILD_ID_MAX + 1];

	image_build_id(of, build_id);
	return open_by_build_id(debug, build_id, place, dirs, open) ||
	       open_by_link(debug, of, build_id, place, dirs, open);
}

bool alternate_open(struct image *alternate, const char *name, const char *build_id,
		    const struct file_place *place, const struct debug_dirs *dirs, open_debug_fn open)
{
	const char *slash = strrchr(place->path, '/'), *at = name;
	char path[3 * PATH_MAX];

	if (open_by_build_id(alternate, build_id, place, dirs, open))
		return true;
	if (name[0] == '/')
		return open_right(alternate, name, build_id, place, false, open);
	/* Another name is relative to the folder of the file that has it: dwz -m beside the program. */
	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - place->path) : 0, place->path, name);
	if (open_right(alternate, path, build_id, place, false, open))
		return true;
	/* Debian's lead from the debug file's folder up to …/debug/.dwz. What follows the "../" is relative
	 * to debug_dir. */
	while (!strncmp(at, "../", 3))
		at += 3;
	snprintf(path, sizeof(path), "%s/%s", dirs->debug, at);
	return at != name && open_right(alternate, path, build_id, place, true, open);
}

void debug_dirs_fetched(char *dir, size_t size)
{
	static const struct {
		const char *variable, *below;
	} places[] = {{"DEBUGINFOD_CACHE_PATH", ""},
		      {"XDG_CACHE_HOME", "/debuginfod_client"},
		      {"HOME", "/.cache/debuginfod_client"}};

	dir[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places) && !dir[0]; i++) {
		const char *value = secure_getenv(places[i].variable);

		if (value && value[0] == '/')
			snprintf(dir, size, "%s%s", value, places[i].below);
	}
}
