// SPDX-License-Identifier: GPL-2.0-only
#include "naming/naming.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "naming/foreign.h"
#include "naming/jitdump.h"
#include "naming/maps.h"
#include "naming/named_source.h"

/* A path or build-id by which a file was asked for before. */
struct alias {
	struct alias *older; /* list of its source */
	struct named_source *source;
	__u64 hash;
	struct identity identity; /* all zero: `text` is a build-id, not a path */
	char text[];
};

/* The same file has other paths in each container and process. */
#define PATHS_MOST 16 /* paths kept per source: the most recent ones */

struct naming {
	struct naming_settings settings;
	struct named_source *newest, *oldest;
	struct named_source *kernel;
	__u64 modules_version; /* of the modules when the kernel's symbols were read */
	__u64 modules_next;    /* when they are looked at again, CLOCK_MONOTONIC, ns */
	bool modules_changed;  /* they were others when they were looked at last: the symbols are to be read
				  again */
	struct worker *worker;
	size_t bytes;	    /* of all sources */
	struct map aliases; /* struct alias by hash */
	time_t forgotten;   /* files not used since this second were forgotten */
	struct name unknown;
};

/* For so many seconds, a file that had no room is not read again. */
#define LEFT_OUT_S 10

/* The same for a file on which the worker failed, the first time; then twice as long each time, so that the
 * file that is to blame costs little. Another one had bad luck: the machine was too busy to read it in time,
 * or had no memory left. */
#define FAILED_S	 60
#define FAILED_DOUBLINGS 6

/* --- sources, in the order in which they were asked for ---------------------------------------- */

static void unlink_source(struct naming *naming, struct named_source *source)
{
	*(source->newer ? &source->newer->older : &naming->newest) = source->older;
	*(source->older ? &source->older->newer : &naming->oldest) = source->newer;
	source->newer = source->older = NULL;
}

static void put_first(struct naming *naming, struct named_source *source)
{
	source->older = naming->newest;
	*(naming->newest ? &naming->newest->newer : &naming->oldest) = source;
	naming->newest = source;
}

static void use_source(struct naming *naming, struct named_source *source)
{
	source->used_at = clock_seconds();
	if (naming->newest == source)
		return;
	unlink_source(naming, source);
	put_first(naming, source);
}

static struct named_source *new_source(struct naming *naming)
{
	struct named_source *source = xcalloc(1, sizeof(*source));

	source->worker = naming->worker;
	put_first(naming, source);
	return source;
}

/* Updates the memory in use after the source has changed. */
static void weigh_source(struct naming *naming, struct named_source *source)
{
	naming->bytes -= source->bytes;
	source->bytes = source_bytes(source);
	naming->bytes += source->bytes;
}

/* Memory of an alias. */
static size_t alias_size(const char *text)
{
	return sizeof(struct alias) + strlen(text) + 1;
}

/* Removes the alias that `of_source`, a pointer within its source's list, points to. */
static void forget_alias(struct naming *naming, struct alias **of_source)
{
	struct alias *alias = *of_source;

	map_remove(&naming->aliases, alias->hash, alias);
	*of_source = alias->older;
	alias->source->alias_bytes -= alias_size(alias->text);
	free(alias);
}

static void forget_source(struct naming *naming, struct named_source *source)
{
	unlink_source(naming, source);
	naming->bytes -= source->bytes;
	if (naming->kernel == source)
		naming->kernel = NULL;
	while (source->aliases)
		forget_alias(naming, &source->aliases);
	source_empty(source);
	free(source->path);
	free(source);
}

size_t naming_memory(const struct naming *naming)
{
	return naming->bytes;
}

/* Whether a source can be dropped to make room, or its lines while its symbols stay. The kernel's stay. */
static bool can_be_dropped(const struct naming *naming, const struct named_source *source, bool lines)
{
	if (lines)
		return source_has_only_lines_kept(source);
	return source != naming->kernel && !source->left_out;
}

/* The source that makes room: the least recently used one if it was unused for LEFT_OUT_S, otherwise the one
 * that was read last. */
static struct named_source *expendable(const struct naming *naming, const struct named_source *used,
				       bool lines)
{
	struct named_source *last = NULL;

	for (struct named_source *source = naming->oldest; source; source = source->newer) {
		if (source == used || !can_be_dropped(naming, source, lines))
			continue;
		if (clock_seconds() - source->used_at >= LEFT_OUT_S)
			return source;
		if (!last || source->read_at >= last->read_at)
			last = source;
	}
	return last;
}

/* What counts against the limit. The kernel's symbols are beside it for `few_lines`: they would be read again
 * by turns with those of programs. */
static size_t counted_bytes(const struct naming *naming)
{
	return naming->bytes - (naming->settings.few_lines && naming->kernel ? naming->kernel->bytes : 0);
}

/* Makes room for `few_lines`. Files that are named by turns would otherwise be read at each turn. One whose
 * lines have grown beyond the whole limit is left to be read again: it then has room for lines elsewhere. */
static void leave_out_lines(struct naming *naming, const struct named_source *used)
{
	struct named_source *source;

	if (!used && naming->newest && naming->newest->bytes > naming->settings.memory)
		used = naming->newest;
	while (counted_bytes(naming) > naming->settings.memory && (source = expendable(naming, used, true))) {
		source_drop_lines(source);
		weigh_source(naming, source);
	}
}

/* Makes room for `sparing`: see struct naming_settings. Dropped sources are not read again for a while. */
static void leave_out(struct naming *naming, const struct named_source *used)
{
	struct named_source *source;

	while (naming_memory(naming) > naming->settings.memory &&
	       (source = expendable(naming, used, false))) {
		source_empty(source);
		source->left_out = source->no_room = true;
		source->why = SOURCE_NO_ROOM;
		source->read_at = clock_seconds();
		weigh_source(naming, source);
	}
}

/* Drops the least recently used sources; the kernel's symbols only if they count. */
static void forget_oldest(struct naming *naming, const struct named_source *used)
{
	for (struct named_source *source = naming->oldest, *newer;
	     source && source != used && counted_bytes(naming) > naming->settings.memory; source = newer) {
		newer = source->newer;
		if (source != naming->kernel || !naming->settings.few_lines)
			forget_source(naming, source);
	}
}

/* Makes room while the limit is exceeded, but keeps `used`, to which the name to be returned belongs; NULL:
 * the caller does not need the last name any more. */
static void keep_limit(struct naming *naming, const struct named_source *used)
{
	if (naming->settings.few_lines)
		leave_out_lines(naming, used);
	if (naming->settings.sparing)
		leave_out(naming, used);
	else
		forget_oldest(naming, used);
}

void naming_forget(struct naming *naming, __u64 since)
{
	time_t second = since / 1000000000;

	if (second <= naming->forgotten)
		return;
	naming->forgotten = second;
	for (struct named_source *source = naming->oldest, *newer; source; source = newer) {
		newer = source->newer;
		if (source->used_at < second && source != naming->kernel) {
			forget_source(naming, source);
		} else if (source->names.nr && source->named_at < second) {
			source_forget_names(source);
			weigh_source(naming, source);
		}
	}
}

struct naming *naming_open(const struct naming_settings *settings)
{
	struct naming *naming = xcalloc(1, sizeof(*naming));

	naming->settings = *settings;
	if (!naming->settings.debug_dir)
		naming->settings.debug_dir = "/usr/lib/debug";
	if (!naming->settings.kallsyms)
		naming->settings.kallsyms = "/proc/kallsyms";
	if (!naming->settings.modules)
		naming->settings.modules = "/proc/modules";
	if (!naming->settings.module_folder)
		naming->settings.module_folder = "/sys/module";
	if (!naming->settings.memory)
		naming->settings.memory = NAMING_MEMORY;
	/* The worker keeps lines, and while it reads a file it also needs memory for the symbols that it
	 * passes on. */
	naming->worker = worker_new(WORKER_BYTES + 2 * naming->settings.memory);
	if (naming->settings.types)
		worker_disassembles(naming->worker);
	worker_start(naming->worker); /* so that it has started by the time when the first name is needed */
	return naming;
}

void naming_wait(struct naming *naming)
{
	worker_wait(naming->worker);
}

void naming_close(struct naming *naming)
{
	if (!naming)
		return;
	while (naming->oldest)
		forget_source(naming, naming->oldest);
	map_release(&naming->aliases);
	worker_release(naming->worker);
	free(naming);
}

/* --- names from a source ------------------------------------------------------------------------ */

static const struct name *unknown_name(struct naming *naming, const char *why)
{
	naming->unknown = (struct name){.why = why};
	return &naming->unknown;
}

static const struct name *unknown_of(struct naming *naming, const struct named_source *source)
{
	naming->unknown = (struct name){.why = source->why,
					.refused = source->refused,
					.failed = source->failed,
					.no_room = source->no_room};
	return &naming->unknown;
}

static const struct name *not_opened(struct naming *naming, int error)
{
	naming->unknown = (struct name){
		.why = source_why(error), .refused = guarded_refused(error), .failed = source_failed(error)};
	return &naming->unknown;
}

/* Stores a name under `key`. */
static struct name *keep_name(struct naming *naming, struct named_source *source, __u64 key,
			      struct name *name)
{
	if (!source->names.nr)
		source->named_at = clock_seconds();
	map_put(&source->names, key, name);
	weigh_source(naming, source);
	keep_limit(naming, source);
	return name;
}

/* Makes the name of an address and stores it under `key`. */
static struct name *name_at(struct naming *naming, struct named_source *source, __u64 key, __u64 address)
{
	return keep_name(naming, source, key, source_name_at(source, address));
}

/* --- which file --------------------------------------------------------------------------------- */

static const struct identity no_identity;

static bool same_identity(const struct identity *a, const struct identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static struct identity identity_of(const struct stat *stat)
{
	return (struct identity){stat->st_dev, stat->st_ino, stat->st_size, stat->st_mtim};
}

static __u64 hash(const char *text, const struct identity *identity)
{
	return map_key(text, identity->ino ^ (__u64)identity->changed.tv_nsec << 32);
}

static struct named_source *find_alias(struct naming *naming, const char *text,
				       const struct identity *identity)
{
	__u64 wanted = hash(text, identity);
	const struct alias *alias;

	for (size_t at = 0; (alias = map_find_next(&naming->aliases, wanted, &at));)
		if (same_identity(&alias->identity, identity) && !strcmp(alias->text, text))
			return alias->source;
	return NULL;
}

static void add_alias(struct naming *naming, const char *text, const struct identity *identity,
		      struct named_source *source)
{
	struct alias *alias = xmalloc(alias_size(text)), **oldest = NULL;
	size_t paths = 0;

	alias->hash = hash(text, identity);
	map_put(&naming->aliases, alias->hash, alias);
	alias->older = source->aliases;
	source->aliases = alias;
	alias->source = source;
	alias->identity = *identity;
	strcpy(alias->text, text);
	source->alias_bytes += alias_size(text);
	for (struct alias **at = &source->aliases; *at; at = &(*at)->older)
		if (!same_identity(&(*at)->identity, &no_identity)) {
			paths++;
			oldest = at;
		}
	if (paths > PATHS_MOST)
		forget_alias(naming, oldest);
	weigh_source(naming, source);
}

/* Finds the current identity of the file. Returns false if there is no such file. */
static bool identify_file(const struct file_place *place, struct identity *identity, unsigned int wait_ms)
{
	char whole[sizeof(place->root) + sizeof(place->path)];
	struct stat now;
	int fd;

	if (!strcmp(place->path, "[vdso]")) {
		*identity = (struct identity){.ino = 1};
		return true;
	}
	snprintf(whole, sizeof(whole), "%s%s%s", place->root,
		 place->root[0] && place->path[0] != '/' ? "/" : "", place->path);
	if (!foreign_stat(place->direct[0] ? place->direct : whole, 0, wait_ms, &now)) {
		if (source_failed(errno))
			return false;
		fd = place_open(place, &now); /* stat(2) follows absolute links out of the root */
		if (fd < 0)
			return false;
		close(fd);
	}
	*identity = identity_of(&now);
	return true;
}

/* Whether they may be copies of the same file, for example in two containers. The build-id alone is not
 * enough: anybody can write any build-id into a file. */
static bool alike(const struct identity *a, const struct identity *b)
{
	return a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
	       a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Memory for the lines of a file that is read now. */
static size_t room_for_lines(const struct naming *naming)
{
	size_t most = naming->settings.memory;

	if (!naming->settings.few_lines)
		return most;
	return counted_bytes(naming) < most ? most - counted_bytes(naming) : 0;
}

static struct named_source *open_source(struct naming *naming, const struct file_place *place,
					const struct identity *identity)
{
	struct named_source *source = new_source(naming), *same = NULL;
	const char *build_id = source->build_id;
	bool open = source_open(source, place);

	source->identity = *identity;
	source->read_at = clock_seconds();
	if (build_id[0])
		same = find_alias(naming, build_id, &no_identity);
	if (same && alike(&same->identity, identity) && !source_is_stale(same)) {
		forget_source(naming, source);
		return same;
	}
	if (open)
		source_load(source, place, &naming->settings, room_for_lines(naming));
	source->left_out = source_is_for_later(source) || source_worker_failed(source);
	weigh_source(naming, source);
	if (build_id[0] && !same)
		add_alias(naming, build_id, &no_identity, source);
	return source;
}

/* What of a file is to be named: code at an offset, data at a distance from that, or what the code accesses.
 */
struct wanted_place {
	__u64 offset, distance;
	bool data, access;
};

/* Finds the address of code before relocation. Returns false if the file has no code at the offset. */
static bool address_of(const struct named_source *source, __u64 offset, __u64 *address)
{
	for (size_t i = 0; i < source->nr_segments; i++) {
		const struct segment *segment = &source->segments[i];

		*address = offset - segment->offset + segment->address;
		if (offset >= segment->offset && offset - segment->offset < segment->size)
			return true;
	}
	return false;
}

/* Names of data are kept among those of code, whose offsets in files are smaller. */
#define KEY_OF_DATA   (1ULL << 63)
#define KEY_OF_ACCESS (1ULL << 62)

static const struct name *datum_in_file(struct naming *naming, struct named_source *source, __u64 address)
{
	const struct name *name = map_find(&source->names, address | KEY_OF_DATA);

	if (name)
		return name;
	for (size_t i = 0; i < source->nr_loaded; i++)
		if (address - source->loaded[i].address < source->loaded[i].size)
			return keep_name(naming, source, address | KEY_OF_DATA,
					 source_datum_at(source, address));
	unknown_name(naming, "nothing of the file is there");
	naming->unknown.outside = true;
	return &naming->unknown;
}

static const struct name *access_in_file(struct naming *naming, struct named_source *source, __u64 address)
{
	const struct name *name = map_find(&source->names, address | KEY_OF_ACCESS);

	return name ? name
		    : keep_name(naming, source, address | KEY_OF_ACCESS, source_access_at(source, address));
}

static const struct name *name_in_file(struct naming *naming, struct named_source *source,
				       const struct wanted_place *place)
{
	const struct name *name =
		place->data || place->access ? NULL : map_find(&source->names, place->offset);
	__u64 address;

	if (name)
		return name;
	if (!address_of(source, place->offset, &address))
		return source->why ? unknown_of(naming, source)
				   : unknown_name(naming, "no code of the file is there");
	if (place->access)
		return access_in_file(naming, source, address);
	return place->data ? datum_in_file(naming, source, address + place->distance)
			   : name_at(naming, source, place->offset, address);
}

/* Writes a build-id as image_build_id() does. Returns false if it is not one. */
static bool plain_build_id(const char *given, char text[2 * BUILD_ID_MAX + 1])
{
	size_t length = strspn(given, "0123456789abcdefABCDEF");

	if (given[length] || !length || length > 2 * BUILD_ID_MAX)
		return false;
	for (size_t i = 0; i <= length; i++)
		text[i] = tolower((unsigned char)given[i]);
	return true;
}

/* Whether build-ids are equal. The kernel's notes always have 20 bytes and pad a shorter
 * build-id with zeros. */
static bool agrees(const char *build_id, const char *wanted)
{
	size_t length = strlen(build_id);

	return !strncmp(build_id, wanted, length) && strspn(wanted + length, "0") == strlen(wanted + length);
}

/* A file that is asked for, and what is known of it. */
struct wanted_file {
	char build_id[2 * BUILD_ID_MAX + 1]; /* "": not given */
	struct file_place place;
	struct identity identity;
	bool missing;		     /* there is no such file; see errno */
	struct named_source *source; /* NULL: not read yet */
};

static void find_wanted(struct naming *naming, struct wanted_file *wanted, const char *path,
			const char *build_id, unsigned int wait_ms)
{
	wanted->missing = false;
	wanted->source = NULL;
	if (!build_id || !plain_build_id(build_id, wanted->build_id))
		wanted->build_id[0] = '\0';
	else
		wanted->source = find_alias(naming, wanted->build_id, &no_identity);
	if (wanted->source)
		return;
	place_of_path(&wanted->place, path, naming->settings.root);
	wanted->missing = !identify_file(&wanted->place, &wanted->identity, wait_ms);
	if (!wanted->missing)
		wanted->source = find_alias(naming, path, &wanted->identity);
}

static time_t pause_before_another_reading(const struct named_source *source)
{
	unsigned int doublings = source->failures - 1;

	if (!source->failures)
		return LEFT_OUT_S;
	return FAILED_S << (doublings < FAILED_DOUBLINGS ? doublings : FAILED_DOUBLINGS);
}

static bool has_paused(const struct named_source *source)
{
	return clock_seconds() - source->read_at >= pause_before_another_reading(source);
}

static bool is_for_another_reading(const struct named_source *source)
{
	return source_is_stale(source) ||
	       ((source->left_out || source->lines_left_out) && has_paused(source));
}

static const struct name *name_of_file(struct naming *naming, const char *path, const char *build_id,
				       const struct wanted_place *place, bool may_read)
{
	struct wanted_file wanted;
	unsigned int failures = 0;
	const struct name *name;
	struct named_source *source;

	keep_limit(naming, NULL);
	find_wanted(naming, &wanted, path, build_id, may_read ? FOREIGN_PATIENT_MS : FOREIGN_SOON_MS);
	if (wanted.source && is_for_another_reading(wanted.source)) {
		if (!may_read)
			return NULL;
		failures = wanted.source->failures;
		forget_source(naming, wanted.source);
		find_wanted(naming, &wanted, path, build_id, FOREIGN_PATIENT_MS);
	}
	if (wanted.missing)
		return not_opened(naming, errno);
	source = wanted.source;
	if (!source && !may_read)
		return NULL;
	if (!source) {
		source = open_source(naming, &wanted.place, &wanted.identity);
		if (source_worker_failed(source))
			source->failures = failures + 1;
		add_alias(naming, path, &wanted.identity, source);
	}
	if (wanted.build_id[0] && !source->why && !agrees(source->build_id, wanted.build_id))
		return unknown_name(naming, "the file that is there now has another build-id");
	use_source(naming, source);
	name = name_in_file(naming, source, place);
	/* The worker that had the lines ended before this request: read the file again. */
	return may_read && source_is_stale(source) ? name_of_file(naming, path, build_id, place, true) : name;
}

const struct name *naming_file(struct naming *naming, const char *path, const char *build_id, __u64 offset)
{
	return name_of_file(naming, path, build_id, &(struct wanted_place){.offset = offset}, true);
}

const struct name *naming_known_file(struct naming *naming, const char *path, const char *build_id,
				     __u64 offset)
{
	return name_of_file(naming, path, build_id, &(struct wanted_place){.offset = offset}, false);
}

const struct name *naming_datum(struct naming *naming, const char *path, const char *build_id, __u64 offset,
				__u64 distance)
{
	return name_of_file(naming, path, build_id, &(struct wanted_place){offset, distance, .data = true},
			    true);
}

const struct name *naming_known_datum(struct naming *naming, const char *path, const char *build_id,
				      __u64 offset, __u64 distance)
{
	return name_of_file(naming, path, build_id, &(struct wanted_place){offset, distance, .data = true},
			    false);
}

const struct name *naming_access(struct naming *naming, const char *path, const char *build_id, __u64 offset)
{
	return name_of_file(naming, path, build_id, &(struct wanted_place){offset, .access = true}, true);
}

const struct name *naming_known_access(struct naming *naming, const char *path, const char *build_id,
				       __u64 offset)
{
	return name_of_file(naming, path, build_id, &(struct wanted_place){offset, .access = true}, false);
}

const struct name *naming_known_build_id(struct naming *naming, const char *build_id, __u64 offset)
{
	char plain[2 * BUILD_ID_MAX + 1];
	struct named_source *source =
		plain_build_id(build_id, plain) ? find_alias(naming, plain, &no_identity) : NULL;

	if (!source || is_for_another_reading(source))
		return NULL;
	keep_limit(naming, source);
	use_source(naming, source);
	return name_in_file(naming, source, &(struct wanted_place){.offset = offset});
}

/* --- the kernel --------------------------------------------------------------------------------- */

/* After so many seconds, symbols that the kernel has hidden are looked for again: kernel.kptr_restrict may
 * have been set. Nobody else would notice, and reading them takes some 50 ms. */
#define HIDDEN_S 60

/* Looking at the modules takes at most one part in so many of the time, and is put off for no longer than
 * that: one that was just loaded has no name until then, or that of the module that was at its addresses
 * before. */
#define MODULES_SHARE	   10
#define MODULES_PAUSE_MOST 100000000ULL

static __u64 modules_version(struct naming *naming)
{
	__u64 begun = clock_ns(CLOCK_MONOTONIC), pause;
	__u64 version = kernel_modules_version(naming->settings.modules, naming->settings.module_folder);
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	pause = MODULES_SHARE * (now - begun);
	naming->modules_next = now + (pause < MODULES_PAUSE_MOST ? pause : MODULES_PAUSE_MOST);
	return version;
}

/* Whether modules were loaded or removed since the kernel's symbols were read. That is looked at for
 * addresses outside of the kernel itself. */
static bool kernel_is_stale(struct naming *naming, __u64 address)
{
	const struct named_source *kernel = naming->kernel;
	const struct symbol *symbol = symbols_find(&kernel->symbols, address);
	const char *name = symbol ? symbol_name(&kernel->symbols, symbol) : NULL;

	if (kernel->why)
		return clock_seconds() - kernel->read_at >= HIDDEN_S;
	if (name && !name[strlen(name) + 1])
		return false;
	if (!naming->modules_changed && clock_ns(CLOCK_MONOTONIC) >= naming->modules_next)
		naming->modules_changed = modules_version(naming) != naming->modules_version;
	return naming->modules_changed;
}

static struct named_source *read_kernel(struct naming *naming)
{
	struct named_source *kernel = new_source(naming);

	/* The modules first: if some come meanwhile, the symbols are read again. */
	naming->modules_version = modules_version(naming);
	naming->modules_changed = false;
	kernel->read_at = clock_seconds();
	kernel->why = kernel_symbols(&kernel->symbols, naming->settings.kallsyms, naming->settings.modules);
	return kernel;
}

const struct name *naming_known_kernel(struct naming *naming, __u64 address)
{
	return naming->kernel && !kernel_is_stale(naming, address) ? naming_kernel(naming, address) : NULL;
}

const struct name *naming_kernel(struct naming *naming, __u64 address)
{
	const struct symbol *symbol;
	struct named_source *source;
	struct name *name;

	keep_limit(naming, NULL);
	if (naming->kernel && kernel_is_stale(naming, address))
		forget_source(naming, naming->kernel);
	if (!naming->kernel)
		naming->kernel = read_kernel(naming);
	source = naming->kernel;
	use_source(naming, source);
	if (source->why)
		return unknown_name(naming, source->why);
	name = map_find(&source->names, address);
	if (name)
		return name;
	name = name_at(naming, source, address, address);
	symbol = symbols_find(&source->symbols, address);
	if (symbol) {
		const char *text = symbol_name(&source->symbols, symbol);

		name->module = text + strlen(text) + 1;
		if (!name->module[0])
			name->module = "[kernel]";
	}
	return name;
}

/* --- run-time compilers --------------------------------------------------------------------------- */

static struct named_source *find_jit(struct naming *naming, const char *map)
{
	for (struct named_source *source = naming->newest; source; source = source->older)
		if (source->path && !strcmp(source->path, map))
			return source;
	return NULL;
}

#define DUMP_MOST (4ULL << 30)

/* Reading one map again takes at most one part in so many of the time, except for the first readings, as many
 * as pay for this time: some maps have a million lines, and get more all the time. */
#define MAP_SHARE    20
#define MAP_BURST_NS 1000000000ULL

/* The kernel's clocks of files and of processes' starts are coarse, and begin their ticks at other moments.
 */
#define STALE_S 1

/* The smallest buffer of a C library: BUFSIZ of musl. A map that is smaller was not written because a buffer
 * was full, which may be in the middle of a name. */
#define BUFFER_LEAST 1024

/* Whether the last line of a map may get longer: a line without a line feed is a part of one then. */
static bool may_grow(const struct identity *map, const struct map_writer *writer)
{
	time_t now = clock_ns(CLOCK_REALTIME) / 1000000000;

	return !writer->ended && (map->size >= BUFFER_LEAST || map->changed.tv_sec + STALE_S >= now);
}

static void read_jit(struct naming *naming, struct named_source *source, const struct file_place *place,
		     const struct map_writer *writer)
{
	/* Most of a dump is code, which is skipped. */
	__u64 most = jitdump_is_named(place->path) ? DUMP_MOST : naming->settings.memory / 4;
	__u64 begun = clock_ns(CLOCK_MONOTONIC), now;
	struct stat stat;
	int fd = place_open_map(place, writer->user, most, &stat), error = errno;

	source_empty(source);
	source->read_at = clock_seconds();
	source->why = NULL;
	source->failed = fd < 0 && source_failed(error);
	source->no_room = fd < 0 && error == EFBIG;
	source->refused = fd < 0 && guarded_refused(error) && !source->no_room;
	if (fd < 0) {
		source->why = source->no_room ? SOURCE_NO_ROOM : source_why(error);
	} else {
		source->identity = identity_of(&stat);
		source->written_at = stat.st_mtime;
		source_load_map(source, fd, naming->settings.memory / 4, naming->settings.lines,
				may_grow(&source->identity, writer));
		if (source_is_for_later(source))
			source->identity = no_identity;
	}
	source->failures = source_worker_failed(source) ? source->failures + 1 : 0;
	now = clock_ns(CLOCK_MONOTONIC);
	if (source->paid_until < begun)
		source->paid_until = begun;
	if (!source->failed)
		source->paid_until += MAP_SHARE * (now - begun);
	weigh_source(naming, source);
}

const struct name *naming_jit(struct naming *naming, const char *map, const struct map_writer *writer,
			      __u64 address)
{
	struct identity identity;
	struct named_source *source;
	struct file_place place;
	bool missing = false, changed = false, later = false;

	keep_limit(naming, NULL);
	place_of_path(&place, map, naming->settings.root);
	source = find_jit(naming, map);
	if (!source) {
		if (!identify_file(&place, &identity, FOREIGN_PATIENT_MS))
			return not_opened(naming, errno);
		source = new_source(naming);
		source->path = xstrdup(map);
		read_jit(naming, source, &place, writer);
	} else {
		/* A JIT appends to the map all the time. Unless the address is missing, it is checked at most
		 * once a second. */
		missing = !symbols_find(&source->symbols, address);
		changed = (missing || clock_seconds() != source->read_at) &&
			  identify_file(&place, &identity, FOREIGN_PATIENT_MS) &&
			  (source->failures ? has_paused(source)
					    : (!same_identity(&identity, &source->identity) ||
					       (source->half_line && !may_grow(&identity, writer))));
		later = changed && clock_ns(CLOCK_MONOTONIC) + MAP_BURST_NS < source->paid_until;
		if ((changed && !later) || source_is_stale(source))
			read_jit(naming, source, &place, writer);
	}
	use_source(naming, source);
	if (source->why)
		return unknown_of(naming, source);
	if (source->written_at && source->written_at + STALE_S < writer->since)
		return unknown_name(naming, "the map is older than the process");
	if (later && missing) {
		naming->unknown =
			(struct name){.why = "the map has changed and is not read again yet", .later = true};
		return &naming->unknown;
	}
	if (map_find(&source->names, address))
		return map_find(&source->names, address);
	return name_at(naming, source, address, address);
}
