// SPDX-License-Identifier: GPL-2.0-only
#include "aggregation/unwind_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "aggregation/libbpf_words.h"
#include "aggregation/object.h"
#include "aggregation/own_pids.h"
#include "base/array.h"
#include "base/memory.h"
#include "plan/denial.h"

/* Room is given out in units of a cache line. */
#define UNIT_WORDS 16
#define UNITS	   (UNWIND_BLOCK_WORDS / UNIT_WORDS)

/* Lists of what processes have mapped come and go by the thousand, and are small. A piece of up to this many
 * units that was given back is kept for the next request of the same size. */
#define SPARE_UNITS 32

struct spares {
	__u32 *positions;
	size_t nr, room;
};

struct block {
	int fd;
	struct unwind_block *mapped;
	size_t nr_free; /* units */
	size_t first;	/* no unit before it is free */
	bool taken[UNITS];
};

struct unwind_memory {
	struct bpf_object *object;
	struct bpf_link *links[2];
	bool finds;
	struct unwind_files *files;
	struct unwind_executions *executions;
	pthread_mutex_t lock; /* of what follows */
	struct block *blocks[UNWIND_BLOCKS];
	size_t nr_blocks, most_blocks;
	size_t units;			       /* taken */
	struct spares spares[SPARE_UNITS + 1]; /* by units; their blocks count them as taken */
};

static const char *const shared[] = {"unwind_blocks", "unwind_files", "unwind_processes", "unwind_inodes",
				     "unwind_kernels"};
static const char *const programs[] = {"on_fork", "on_exec"};
static int map_fd(const struct unwind_memory *memory, const char *name)
{
	return bpf_object__find_map_fd_by_name(memory->object, name);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void *map_of(const struct unwind_memory *memory, const char *name, size_t size)
{
	void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd(memory, name), 0);

	return mapped == MAP_FAILED ? NULL : mapped;
}

/* Whether the programs know how this kernel stores mappings. */
static bool knows_layout(const struct unwind_memory *memory)
{
	struct unwind_kernel kernel;
	__u32 zero = 0;

	return !bpf_map_lookup_elem(map_fd(memory, "unwind_kernels"), &zero, &kernel) && kernel.mm;
}

/* Returns 0 or -errno. */
static int load_programs(struct unwind_memory *memory, bool with_programs, struct libbpf_words *words)
{
	struct bpf_program *find_layout = NULL;
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err;

	libbpf_words_begin(words);
	memory->object = object_open("unwind");
	err = memory->object ? 0 : -errno;
	for (size_t i = 0; !err && i < ARRAY_SIZE(programs); i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(memory->object, programs[i]),
					  with_programs);
	if (!err)
		find_layout = bpf_object__find_program_by_name(memory->object, "find_layout");
	if (!err)
		bpf_program__set_autoload(find_layout, with_programs);
	if (!err)
		own_pids_set(memory->object);
	err = err ? err : bpf_object__load(memory->object);
	for (size_t i = 0; !err && with_programs && i < ARRAY_SIZE(programs); i++) {
		memory->links[i] =
			bpf_program__attach(bpf_object__find_program_by_name(memory->object, programs[i]));
		err = memory->links[i] ? 0 : -errno;
	}
	if (!err && with_programs) {
		err = bpf_prog_test_run_opts(bpf_program__fd(find_layout), &run);
		bpf_program__unload(find_layout);
		memory->finds = !err && knows_layout(memory);
	}
	libbpf_words_end(words);
	return err;
}

static void unload(struct unwind_memory *memory)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		bpf_link__destroy(memory->links[i]);
	memset(memory->links, 0, sizeof(memory->links));
	bpf_object__close(memory->object);
	memory->object = NULL;
}

static void release_block(struct block *block)
{
	if (block->mapped != MAP_FAILED)
		munmap(block->mapped, sizeof(struct unwind_block));
	if (block->fd >= 0)
		close(block->fd);
	free(block);
}

static bool add_block(struct unwind_memory *memory)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	__u32 number = memory->nr_blocks;
	struct block *block;

	if (number >= memory->most_blocks)
		return false;
	block = xcalloc(1, sizeof(*block));
	block->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_block", sizeof(__u32),
				   sizeof(struct unwind_block), 1, &options);
	block->mapped = block->fd < 0 ? MAP_FAILED
				      : mmap(NULL, sizeof(struct unwind_block), PROT_READ | PROT_WRITE,
					     MAP_SHARED, block->fd, 0);
	if (block->mapped == MAP_FAILED ||
	    bpf_map_update_elem(map_fd(memory, "unwind_blocks"), &number, &block->fd, BPF_ANY)) {
		release_block(block);
		return false;
	}
	block->nr_free = UNITS;
	memory->blocks[memory->nr_blocks++] = block;
	return true;
}

int unwind_memory_open(struct unwind_memory **result, size_t most, const struct host *host,
		       struct refusal *refusal)
{
	struct unwind_memory *memory = xcalloc(1, sizeof(*memory));
	struct libbpf_words words;
	int err;

	pthread_mutex_init(&memory->lock, NULL);
	memory->most_blocks = most / sizeof(struct unwind_block);
	if (memory->most_blocks > UNWIND_BLOCKS)
		memory->most_blocks = UNWIND_BLOCKS;
	err = load_programs(memory, true, &words);
	if (err) { /* for example without the kernel's BTF */
		unload(memory);
		err = load_programs(memory, false, &words);
	}
	if (!err) {
		memory->files = map_of(memory, "unwind_files", sizeof(*memory->files));
		memory->executions = map_of(memory, "unwind_executions", sizeof(*memory->executions));
		if (!memory->files || !memory->executions || !add_block(memory))
			err = errno ? -errno : -ENOMEM;
	}
	if (err) {
		unwind_memory_close(memory);
		return bpf_denied(refusal, host, "making memory for tables of stacks", -err, words.last);
	}
	*result = memory;
	unwind_memory_take(memory, UNIT_WORDS); /* takes position 0, which means "none" */
	return 0;
}

void unwind_memory_close(struct unwind_memory *memory)
{
	if (!memory)
		return;
	for (size_t i = 0; i < memory->nr_blocks; i++)
		release_block(memory->blocks[i]);
	for (size_t i = 0; i <= SPARE_UNITS; i++)
		free(memory->spares[i].positions);
	if (memory->files)
		munmap(memory->files, sizeof(*memory->files));
	if (memory->executions)
		munmap(memory->executions, sizeof(*memory->executions));
	unload(memory);
	pthread_mutex_destroy(&memory->lock);
	free(memory);
}

void unwind_memory_share(const struct unwind_memory *memory, struct bpf_object *object)
{
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, shared[i]);

		if (map && memory)
			bpf_map__reuse_fd(map, map_fd(memory, shared[i]));
		else if (map)
			bpf_map__set_autocreate(map, false);
	}
}

bool unwind_memory_follows(const struct unwind_memory *memory)
{
	return memory->links[0] && memory->links[1];
}

bool unwind_memory_finds(const struct unwind_memory *memory)
{
	return memory->finds;
}

/* --- room ------------------------------------------------------------------------------------- */

/* Returns the first run of this many free units; UNITS if there is none. */
static size_t find_room(struct block *block, size_t units)
{
	size_t run = 0;

	while (block->first < UNITS && block->taken[block->first])
		block->first++;
	for (size_t i = block->first; i < UNITS && block->nr_free >= units; i++) {
		run = block->taken[i] ? 0 : run + 1;
		if (run == units)
			return i + 1 - units;
	}
	return UNITS;
}

static void mark_units(struct unwind_memory *memory, struct block *block, size_t at, size_t units, bool taken)
{
	memset(block->taken + at, taken, units);
	if (taken) {
		block->nr_free -= units;
		memory->units += units;
		return;
	}
	block->nr_free += units;
	memory->units -= units;
	block->first = at < block->first ? at : block->first;
}

static void mark_free(struct unwind_memory *memory, __u32 position, size_t units)
{
	mark_units(memory, memory->blocks[position >> UNWIND_WORD_BITS],
		   (position & (UNWIND_BLOCK_WORDS - 1)) / UNIT_WORDS, units, false);
}

/* Gives spare pieces back to their blocks. Returns whether there were any. */
static bool free_spares(struct unwind_memory *memory)
{
	bool any = false;

	for (size_t units = 1; units <= SPARE_UNITS; units++) {
		struct spares *spares = &memory->spares[units];

		any = any || spares->nr;
		memory->units += spares->nr * units;
		while (spares->nr)
			mark_free(memory, spares->positions[--spares->nr], units);
	}
	return any;
}

static size_t units_of(size_t words)
{
	return (words + UNIT_WORDS - 1) / UNIT_WORDS;
}

/* Takes room in a block. Returns its position; 0 if there is none. */
static __u32 take_room(struct unwind_memory *memory, size_t units)
{
	for (size_t i = 0; i < memory->nr_blocks; i++) {
		size_t at = find_room(memory->blocks[i], units);

		if (at == UNITS)
			continue;
		mark_units(memory, memory->blocks[i], at, units, true);
		return i << UNWIND_WORD_BITS | at * UNIT_WORDS;
	}
	return 0;
}

__u32 unwind_memory_take(struct unwind_memory *memory, size_t words)
{
	size_t units = units_of(words);
	struct spares *spares = units <= SPARE_UNITS ? &memory->spares[units] : NULL;
	__u32 position = 0;

	if (units > UNITS)
		return 0;
	pthread_mutex_lock(&memory->lock);
	if (spares && spares->nr) {
		position = spares->positions[--spares->nr];
		memory->units += units;
	} else {
		do
			position = take_room(memory, units);
		while (!position && (free_spares(memory) || add_block(memory)));
	}
	pthread_mutex_unlock(&memory->lock);
	return position;
}

void unwind_memory_give(struct unwind_memory *memory, __u32 position, size_t words)
{
	size_t units = units_of(words);
	struct spares *spares = units <= SPARE_UNITS ? &memory->spares[units] : NULL;

	pthread_mutex_lock(&memory->lock);
	if (spares) {
		spares->positions =
			xroom(spares->positions, spares->nr, &spares->room, sizeof(*spares->positions));
		spares->positions[spares->nr++] = position;
		memory->units -= units;
	} else {
		mark_free(memory, position, units);
	}
	pthread_mutex_unlock(&memory->lock);
}

void unwind_memory_trim(struct unwind_memory *memory)
{
	pthread_mutex_lock(&memory->lock);
	free_spares(memory);
	while (memory->nr_blocks > 1 && memory->blocks[memory->nr_blocks - 1]->nr_free == UNITS) {
		__u32 number = memory->nr_blocks - 1;

		if (bpf_map_delete_elem(map_fd(memory, "unwind_blocks"), &number))
			break;
		release_block(memory->blocks[number]);
		memory->nr_blocks--;
	}
	pthread_mutex_unlock(&memory->lock);
}

void *unwind_memory_at(const struct unwind_memory *memory, __u32 position)
{
	return &memory->blocks[position >> UNWIND_WORD_BITS]
			->mapped->words[position & (UNWIND_BLOCK_WORDS - 1)];
}

size_t unwind_memory_bytes(struct unwind_memory *memory)
{
	size_t bytes;

	pthread_mutex_lock(&memory->lock);
	bytes = memory->units * UNIT_WORDS * sizeof(__u32);
	pthread_mutex_unlock(&memory->lock);
	return bytes;
}

/* Before a change of a map of maps returns, the kernel waits for all running programs:
 * maybe_wait_bpf_programs(), kernel/bpf/syscall.c. This call writes the value that is already there. */
void unwind_memory_wait(const struct unwind_memory *memory)
{
	__u32 zero = 0;

	bpf_map_update_elem(map_fd(memory, "unwind_blocks"), &zero, &memory->blocks[0]->fd, BPF_ANY);
}

/* --- files, processes -------------------------------------------------------------------------- */

static struct unwind_inode in_kernel(const struct unwind_inode *inode)
{
	return (struct unwind_inode){inode->number, kernel_device(inode->device), inode->size};
}

void unwind_memory_name(const struct unwind_memory *memory, const struct unwind_inode *inode, __u32 number,
			__s64 bias)
{
	struct unwind_inode key = in_kernel(inode);

	bpf_map_update_elem(map_fd(memory, "unwind_inodes"), &key, &(struct unwind_named){number, bias},
			    BPF_ANY);
}

void unwind_memory_forget_name(const struct unwind_memory *memory, const struct unwind_inode *inode)
{
	struct unwind_inode key = in_kernel(inode);

	bpf_map_delete_elem(map_fd(memory, "unwind_inodes"), &key);
}

struct unwind_file *unwind_memory_file(const struct unwind_memory *memory, __u32 number)
{
	return &memory->files->list[number];
}

void unwind_memory_look_up_anew(const struct unwind_memory *memory)
{
	__atomic_fetch_add(&memory->files->epoch, 1, __ATOMIC_RELEASE);
}

int unwind_memory_set(const struct unwind_memory *memory, pid_t pid, const struct unwind_process *process)
{
	return bpf_map_update_elem(map_fd(memory, "unwind_processes"), &pid, process, BPF_ANY);
}

void unwind_memory_forget(const struct unwind_memory *memory, pid_t pid)
{
	bpf_map_delete_elem(map_fd(memory, "unwind_processes"), &pid);
}

__u32 unwind_memory_executions(const struct unwind_memory *memory, pid_t pid)
{
	return __atomic_load_n(&memory->executions->nr[pid & (UNWIND_EXECUTIONS - 1)], __ATOMIC_RELAXED);
}
