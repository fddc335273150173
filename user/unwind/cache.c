// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/cache.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aggregation/unwind_memory.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/thread.h"
#include "naming/image.h"
#include "naming/worker.h"
#include "unwind/table.h"

/* Only so many segments with code are supported per file; linkers write one. */
#define SEGMENTS 4

/* The size of a chunk of rows: consecutive pages that together fit into a block. */
#define CHUNK_WORDS (1 << 14)

/* A table that was used within UNUSED_NS is not removed; otherwise tables would replace each other in turns.
 * Uses are noted when processes map files, at most once in NOTED_NS. */
#define UNUSED_NS 2000000000ULL
#define NOTED_NS  100000000ULL

/* A file whose table had no room is tried again after a pause, which doubles each time up to half an hour: a
 * large table takes time to make even if there is no room. */
#define PAUSES_MOST 10

/* A table of a file that no process has mapped and that no program has used for this time is freed. */
#define KEPT_NS 60000000000ULL

/* Lists of processes are freed so many at a time, because each time the kernel waits for all running
 * programs. A list has a few hundred bytes. */
#define RETIRED_MOST 64

struct chunk {
	__u32 position;
	size_t words;
};

struct file {
	enum {
		FILE_FREE,
		FILE_WAITING,
		FILE_BUSY,
		FILE_READY,
		FILE_WITHOUT, /* the file can't have a table */
		FILE_NO_ROOM, /* there was no room for its table, or it was removed; it may be made again */
	} state;
	unsigned int refusals; /* consecutive ones */
	bool wanted;	       /* a program has needed the table since it had no room */
	size_t users;
	int fd; /* while waiting; -1: the vdso */
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	struct segment segments[SEGMENTS];
	size_t nr_segments;
	struct chunk *chunks; /* the pieces of memory of the table */
	size_t nr_chunks;
	__u64 used; /* CLOCK_MONOTONIC, ns: when a use was last noted; FILE_NO_ROOM: when it became so */
};

struct unwind_tables {
	struct unwind_memory *memory;
	struct worker *worker; /* used by the thread */
	pthread_t thread;
	bool started;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock: */
	bool ending;
	struct file files[UNWIND_FILES];
	struct map numbered; /* struct file with a number, by inode_key() */
	__u32 nr_numbers;    /* end of the numbers in use; 0 is not a file */
	__u64 noted;	     /* when uses were last noted, CLOCK_MONOTONIC, ns */
	size_t nr_waiting;
	bool busy;
	struct chunk *retired;
	size_t nr_retired, room_retired;
	bool shrinking; /* there are tables among `retired` */
	struct unwind_tables_account account;
};

/* Memory of the worker: it reads a section as a whole, and collects rows in lists whose size doubles. */
#define READING_MOST(most) ((16UL << 20) + 4 * (most))

struct unwind_tables *unwind_tables_open(struct unwind_memory *memory, size_t most)
{
	struct unwind_tables *tables = xcalloc(1, sizeof(*tables));

	tables->memory = memory;
	tables->worker = worker_new(WORKER_BYTES + READING_MOST(most));
	worker_start(tables->worker); /* so that it has started by the time when the first table is needed */
	tables->nr_numbers = 1;
	pthread_mutex_init(&tables->lock, NULL);
	condition_init(&tables->changed);
	return tables;
}

/* --- making one, in the thread ------------------------------------------------------------------ */

static __u32 put_words(struct unwind_tables *tables, struct file *file, const void *from, size_t words)
{
	__u32 position = unwind_memory_take(tables->memory, words);

	if (!position)
		return 0;
	if (from)
		memcpy(unwind_memory_at(tables->memory, position), from, words * sizeof(__u32));
	*xappend(file->chunks, file->nr_chunks) = (struct chunk){position, words};
	return position;
}

static void give_chunks(struct unwind_tables *tables, struct file *file)
{
	for (size_t i = 0; i < file->nr_chunks; i++)
		unwind_memory_give(tables->memory, file->chunks[i].position, file->chunks[i].words);
	free(file->chunks);
	file->chunks = NULL;
	file->nr_chunks = 0;
}

/* Copies the rows to the memory, in chunks of pages, and sets where each page's rows are. */
static bool put_rows(struct unwind_tables *tables, struct file *file, const struct unwind_table *table,
		     struct unwind_page *pages)
{
	for (size_t first = 0, next; first < table->nr_pages; first = next) {
		__u32 begin = table->pages[first].first, end = begin + table->pages[first].nr, position;

		for (next = first + 1; next < table->nr_pages; next++) {
			const struct unwind_page *page = &table->pages[next];

			if (page->first + page->nr - begin > CHUNK_WORDS)
				break;
			end = page->first + page->nr > end ? page->first + page->nr : end;
		}
		position = put_words(tables, file, table->rows + begin, end - begin);
		if (!position)
			return false;
		for (size_t i = first; i < next; i++)
			pages[i] = (struct unwind_page){position + (table->pages[i].first - begin),
							table->pages[i].nr};
	}
	return true;
}

static bool put_table(struct unwind_tables *tables, struct file *file, __u32 number,
		      const struct unwind_table *table)
{
	struct unwind_file *shown = unwind_memory_file(tables->memory, number);
	struct unwind_page *pages = xcalloc(table->nr_pages, sizeof(*pages));
	__u32 directory = 0, rules = put_words(tables, file, table->rules, 2 * table->nr_rules);
	bool done = rules && put_rows(tables, file, table, pages);

	if (done)
		directory = put_words(tables, file, pages, 2 * table->nr_pages);
	free(pages);
	if (!directory) {
		give_chunks(tables, file);
		return false;
	}
	shown->base = table->base;
	shown->pages = directory;
	shown->rules = rules;
	__atomic_store_n(&shown->nr_pages, table->nr_pages, __ATOMIC_RELEASE);
	return true;
}

static void retire_chunk(struct unwind_tables *tables, struct chunk chunk)
{
	tables->retired =
		xroom(tables->retired, tables->nr_retired, &tables->room_retired, sizeof(*tables->retired));
	tables->retired[tables->nr_retired++] = chunk;
}

static void retire_table(struct unwind_tables *tables, __u32 number)
{
	struct file *file = &tables->files[number];

	unwind_memory_file(tables->memory, number)->nr_pages = 0;
	for (size_t i = 0; i < file->nr_chunks; i++)
		retire_chunk(tables, file->chunks[i]);
	free(file->chunks);
	file->chunks = NULL;
	file->nr_chunks = 0;
	file->state = FILE_NO_ROOM;
	file->wanted = false;
	tables->account.tables--;
	tables->shrinking = true;
}

/* Notes which tables programs have used since the last call. Frees tables that are not needed any more. */
static void note_uses(struct unwind_tables *tables)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	tables->noted = now;
	for (__u32 i = 1; i < tables->nr_numbers; i++) {
		struct unwind_file *shown = unwind_memory_file(tables->memory, i);
		struct file *file = &tables->files[i];

		if (!shown->used) {
			if (file->state == FILE_READY && !file->users && file->used + KEPT_NS < now)
				retire_table(tables, i);
			continue;
		}
		shown->used = 0;
		if (file->state == FILE_READY)
			file->used = now;
		else
			file->wanted = true;
	}
	unwind_memory_look_up_anew(tables->memory);
}

/* Called with the lock. Removes the table that was not used for longest, unless some memory is already being
 * freed. */
static void take_away(struct unwind_tables *tables)
{
	struct file *oldest = NULL;

	note_uses(tables);
	for (__u32 i = 1; i < tables->nr_numbers && !tables->nr_retired; i++) {
		struct file *file = &tables->files[i];

		if (file->state == FILE_READY && (!oldest || file->used < oldest->used))
			oldest = file;
	}
	if (oldest && (!oldest->users || oldest->used + UNUSED_NS <= clock_ns(CLOCK_MONOTONIC)))
		retire_table(tables, oldest - tables->files);
}

/* Frees retired memory once no program uses it. Called with the lock, which is released meanwhile. `shrink`:
 * also frees blocks that are empty then. */
static void give_retired(struct unwind_tables *tables, bool shrink)
{
	struct chunk *retired = tables->retired;
	size_t nr = tables->nr_retired;

	tables->retired = NULL;
	tables->nr_retired = tables->room_retired = 0;
	tables->shrinking = false;
	pthread_mutex_unlock(&tables->lock);
	unwind_memory_wait(tables->memory);
	for (size_t i = 0; i < nr; i++)
		unwind_memory_give(tables->memory, retired[i].position, retired[i].words);
	free(retired);
	if (shrink)
		unwind_memory_trim(tables->memory);
	pthread_mutex_lock(&tables->lock);
}

static bool has_much_to_give(const struct unwind_tables *tables)
{
	return tables->shrinking || tables->nr_retired >= RETIRED_MOST;
}

/* Makes room for a table, at first by freeing lists that are not used any more. Returns whether anything was
 * freed. */
static bool make_room(struct unwind_tables *tables)
{
	bool retired;

	pthread_mutex_lock(&tables->lock);
	if (!tables->nr_retired)
		take_away(tables);
	retired = tables->nr_retired;
	if (retired)
		give_retired(tables, false);
	pthread_mutex_unlock(&tables->lock);
	return retired;
}

/* Has the worker make the table, which points into the sealed memory. Returns NULL, or why there is none. */
static const char *ask_table(struct unwind_tables *tables, int fd, struct unwind_table *table,
			     struct sealed *sealed)
{
	struct question_of_worker question = {.ask = {.kind = ASK_TABLE}, .fd = fd, .sealed = sealed};
	const struct answer *answer = worker_ask(tables->worker, &question);

	if (answer && answer->why[0])
		return "there is none";
	if (!answer || !sealed->memory ||
	    !unwind_table_of_memory(table, answer->base, answer->counts, sealed->memory, sealed->size))
		return WORKER_FAILED;
	return NULL;
}

/* Makes the table of a file. While the file is FILE_BUSY, only the thread accesses it. */
static void make_table(struct unwind_tables *tables, struct file *file, __u32 number)
{
	__u64 begin = clock_ns(CLOCK_MONOTONIC);
	struct unwind_table table = {0};
	struct sealed sealed = {0};
	const char *why = ask_table(tables, file->fd, &table, &sealed);
	bool made = false;

	file->fd = -1; /* worker_ask() has closed it */
	if (!why)
		do
			made = put_table(tables, file, number, &table);
		while (!made && make_room(tables));
	sealed_release(&sealed);
	pthread_mutex_lock(&tables->lock);
	if (made) /* what was used until now was no table */
		unwind_memory_file(tables->memory, number)->used = 0;
	file->state = made ? FILE_READY : why ? FILE_WITHOUT : FILE_NO_ROOM;
	file->used = clock_ns(CLOCK_MONOTONIC);
	tables->account.tables += made;
	tables->account.refused += file->state == FILE_NO_ROOM && !file->refusals;
	file->refusals = file->state == FILE_NO_ROOM ? file->refusals + 1 : 0;
	file->wanted = false;
	tables->account.ns += file->used - begin;
	pthread_mutex_unlock(&tables->lock);
}

/* --- the thread ----------------------------------------------------------------------------------- */

static __u32 smallest(const struct unwind_tables *tables)
{
	__u32 found = 0;

	for (__u32 i = 1; i < tables->nr_numbers; i++)
		if (tables->files[i].state == FILE_WAITING &&
		    (!found || tables->files[i].size < tables->files[found].size))
			found = i;
	return found;
}

/* Called with the lock, which is released meanwhile. */
static void make_one(struct unwind_tables *tables)
{
	__u32 number = smallest(tables);
	struct file *file = &tables->files[number];

	file->state = FILE_BUSY;
	tables->nr_waiting--;
	pthread_mutex_unlock(&tables->lock);
	make_table(tables, file, number);
	pthread_mutex_lock(&tables->lock);
}

static void *work(void *argument)
{
	struct unwind_tables *tables = argument;

	pthread_mutex_lock(&tables->lock);
	while (!tables->ending) {
		tables->busy = true;
		if (tables->nr_waiting)
			make_one(tables);
		else if (has_much_to_give(tables))
			give_retired(tables, tables->shrinking);
		tables->busy = false;
		pthread_cond_broadcast(&tables->changed);
		while (!tables->ending && !tables->nr_waiting && !has_much_to_give(tables))
			pthread_cond_wait(&tables->changed, &tables->lock);
	}
	pthread_mutex_unlock(&tables->lock);
	return NULL;
}

/* Called with the lock. */
static void wake(struct unwind_tables *tables)
{
	if (!tables->started)
		tables->started = thread_start(&tables->thread, work, tables);
	pthread_cond_broadcast(&tables->changed);
}

void unwind_tables_close(struct unwind_tables *tables)
{
	if (!tables)
		return;
	pthread_mutex_lock(&tables->lock);
	tables->ending = true;
	pthread_cond_broadcast(&tables->changed);
	pthread_mutex_unlock(&tables->lock);
	if (tables->started)
		pthread_join(tables->thread, NULL);
	for (__u32 i = 1; i < tables->nr_numbers; i++) {
		if (tables->files[i].fd >= 0)
			close(tables->files[i].fd);
		free(tables->files[i].chunks);
	}
	map_release(&tables->numbered);
	free(tables->retired);
	worker_release(tables->worker);
	pthread_cond_destroy(&tables->changed);
	pthread_mutex_destroy(&tables->lock);
	free(tables);
}

/* --- numbers -------------------------------------------------------------------------------------- */

static __u64 inode_key(const struct file *file)
{
	return file->inode ^ (__u64)file->device << 32;
}

static bool is_same_file(const struct file *a, const struct file *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static struct unwind_inode inode_of(const struct file *file)
{
	return (struct unwind_inode){file->inode, file->device, file->size};
}

static __s64 bias_of(const struct segment *segment)
{
	return segment->offset - segment->address;
}

/* Tells programs the file's number by its inode. Not if parts of the file have different biases: then
 * programs need the list of mappings. */
static void name_by_inode(struct unwind_tables *tables, const struct file *file, __u32 number)
{
	struct unwind_inode inode = inode_of(file);

	for (size_t i = 1; i < file->nr_segments; i++)
		if (bias_of(&file->segments[i]) != bias_of(&file->segments[0]))
			return;
	unwind_memory_name(tables->memory, &inode, number, bias_of(&file->segments[0]));
}

/* Returns a number that was never used, or one of a file that no process has mapped. 0: there is none. */
static __u32 free_number(struct unwind_tables *tables)
{
	struct unwind_inode inode;
	__u32 oldest = 0;

	if (tables->nr_numbers < UNWIND_FILES)
		return tables->nr_numbers++;
	for (__u32 i = 1; i < UNWIND_FILES; i++)
		if (tables->files[i].state >= FILE_WITHOUT && !tables->files[i].users &&
		    (!oldest || tables->files[i].used < tables->files[oldest].used))
			oldest = i;
	if (!oldest)
		return 0;
	inode = inode_of(&tables->files[oldest]);
	unwind_memory_forget_name(tables->memory, &inode);
	map_remove(&tables->numbered, inode_key(&tables->files[oldest]), &tables->files[oldest]);
	return oldest;
}

/* Reads the segments with code of a 64-bit file. Returns whether there are any. */
static bool read_segments(int fd, struct file *file)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_machine != EM_X86_64 || header.e_phentsize != sizeof(segment))
		return false;
	for (unsigned int i = 0; i < header.e_phnum && i < 64 && file->nr_segments < SEGMENTS; i++) {
		if (pread(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment)) !=
		    sizeof(segment))
			return false;
		if (segment.p_type == PT_LOAD && segment.p_flags & PF_X)
			file->segments[file->nr_segments++] =
				(struct segment){segment.p_offset, segment.p_filesz, segment.p_vaddr};
	}
	return file->nr_segments;
}

/* Called with the lock. Returns the number of a file; 0 if it has none yet. */
static __u32 find_number(struct unwind_tables *tables, const struct file *wanted)
{
	const struct file *file;

	for (size_t at = 0; (file = map_find_next(&tables->numbered, inode_key(wanted), &at));)
		if (is_same_file(file, wanted))
			return file - tables->files;
	return 0;
}

/* Called with the lock. Has the thread make a file's table, from a duplicate of the descriptor (-1: the
 * vdso). */
static void ask_for_table(struct unwind_tables *tables, struct file *file, int fd)
{
	file->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	file->state = fd >= 0 && file->fd < 0 ? FILE_WITHOUT : FILE_WAITING;
	if (file->state == FILE_WAITING) {
		tables->nr_waiting++;
		wake(tables);
	}
}

/* Called with the lock. Gives a number to a file that has none. Returns 0 if none is left. */
static __u32 add_file(struct unwind_tables *tables, struct file *wanted, int fd)
{
	__u32 number = free_number(tables);

	if (!number)
		return 0;
	tables->files[number] = *wanted;
	map_put(&tables->numbered, inode_key(wanted), &tables->files[number]);
	name_by_inode(tables, wanted, number);
	ask_for_table(tables, &tables->files[number], fd);
	return number;
}

/* Called with the lock. Whether a file that had no room may be tried again. */
static bool is_due(const struct file *file)
{
	unsigned int pauses = file->refusals < PAUSES_MOST ? file->refusals : PAUSES_MOST;

	return file->state == FILE_NO_ROOM && file->used + (UNUSED_NS << pauses) < clock_ns(CLOCK_MONOTONIC);
}

bool unwind_tables_wants(struct unwind_tables *tables, __u32 number)
{
	bool wants;

	pthread_mutex_lock(&tables->lock);
	wants = tables->files[number].wanted && is_due(&tables->files[number]);
	pthread_mutex_unlock(&tables->lock);
	return wants;
}

bool unwind_tables_note_uses(struct unwind_tables *tables)
{
	bool wants = false;

	pthread_mutex_lock(&tables->lock);
	if (clock_ns(CLOCK_MONOTONIC) - tables->noted > NOTED_NS) {
		note_uses(tables);
		for (__u32 i = 1; i < tables->nr_numbers && !wants; i++)
			wants = tables->files[i].wanted && is_due(&tables->files[i]);
	}
	if (has_much_to_give(tables))
		wake(tables);
	pthread_mutex_unlock(&tables->lock);
	return wants;
}

static __u32 get(struct unwind_tables *tables, struct file *wanted, int fd)
{
	__u32 number;

	pthread_mutex_lock(&tables->lock);
	number = find_number(tables, wanted);
	if (!number && (fd < 0 || read_segments(fd, wanted)))
		number = add_file(tables, wanted, fd);
	else if (number && is_due(&tables->files[number]))
		ask_for_table(tables, &tables->files[number], fd);
	if (number)
		tables->files[number].users++;
	pthread_mutex_unlock(&tables->lock);
	return number;
}

static struct file file_of(const struct stat *stat)
{
	return (struct file){.fd = -1,
			     .device = stat->st_dev,
			     .inode = stat->st_ino,
			     .size = stat->st_size,
			     .changed = stat->st_mtim};
}

__u32 unwind_tables_get(struct unwind_tables *tables, const struct stat *stat, int fd)
{
	struct file wanted = file_of(stat);

	return S_ISREG(stat->st_mode) ? get(tables, &wanted, fd) : 0;
}

__u32 unwind_tables_known(struct unwind_tables *tables, const struct stat *stat)
{
	struct file wanted = file_of(stat);
	__u32 number;

	pthread_mutex_lock(&tables->lock);
	number = find_number(tables, &wanted);
	if (number && is_due(&tables->files[number]))
		number = 0;
	if (number)
		tables->files[number].users++;
	pthread_mutex_unlock(&tables->lock);
	return number;
}

__u32 unwind_tables_get_vdso(struct unwind_tables *tables)
{
	struct file wanted = {.fd = -1, .nr_segments = 1};

	/* It is mapped as a whole, from its first byte. */
	wanted.segments[0] = (struct segment){0, 1 << 16, 0};
	return get(tables, &wanted, -1);
}

void unwind_tables_put(struct unwind_tables *tables, __u32 number)
{
	if (!number)
		return;
	pthread_mutex_lock(&tables->lock);
	tables->files[number].users--;
	pthread_mutex_unlock(&tables->lock);
}

/* A mapping begins at the page that contains the first byte of its segment. */
#define PAGE 4096ULL

bool unwind_tables_bias(struct unwind_tables *tables, __u32 number, __u64 begin, __u64 offset, __u64 *bias)
{
	const struct file *file = &tables->files[number];

	for (size_t i = 0; i < file->nr_segments; i++) {
		const struct segment *segment = &file->segments[i];

		if (offset < (segment->offset & ~(PAGE - 1)) || offset >= segment->offset + segment->size)
			continue;
		*bias = begin - offset + bias_of(segment);
		return true;
	}
	return false;
}

void unwind_tables_retire(struct unwind_tables *tables, __u32 position, size_t words)
{
	pthread_mutex_lock(&tables->lock);
	retire_chunk(tables, (struct chunk){position, words});
	if (has_much_to_give(tables))
		wake(tables);
	pthread_mutex_unlock(&tables->lock);
}

void unwind_tables_wait(struct unwind_tables *tables, __u64 deadline)
{
	pthread_mutex_lock(&tables->lock);
	while (tables->started && (tables->nr_waiting || tables->busy || has_much_to_give(tables)))
		if (!condition_wait(&tables->changed, &tables->lock, deadline))
			break;
	pthread_mutex_unlock(&tables->lock);
}

struct unwind_tables_account unwind_tables_account(struct unwind_tables *tables)
{
	struct unwind_tables_account account;

	pthread_mutex_lock(&tables->lock);
	account = tables->account;
	pthread_mutex_unlock(&tables->lock);
	return account;
}
