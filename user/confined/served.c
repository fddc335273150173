// SPDX-License-Identifier: GPL-2.0-only
/* The code that runs in the worker process: see worker.h. Whatever a file contains, the worst that can happen
 * is a wrong answer, or none. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/reports.h"
#include "confined/access.h"
#include "confined/disassemble.h"
#include "confined/dwarf_image.h"
#include "confined/filter.h"
#include "confined/go_image.h"
#include "confined/jit_lines.h"
#include "confined/lines.h"
#include "confined/read_file.h"
#include "confined/symbol_index.h"
#include "confined/types.h"
#include "confined/unwind_image.h"
#include "naming/debug_file.h"
#include "naming/jitdump.h"
#include "naming/maps.h"
#include "naming/message.h"
#include "unwind/table.h"

/* --- what is left to it ------------------------------------------------------------------------- */

/* Sets a limit to what is wanted, or to the session's own hard limit if that is lower. */
static void bound(int what, rlim_t wanted)
{
	struct rlimit limit = {wanted, wanted};

	if (setrlimit(what, &limit) && !getrlimit(what, &limit)) {
		limit.rlim_cur = limit.rlim_max = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		setrlimit(what, &limit);
	}
}

/* Raises the limit of descriptors to the hard limit, because files with lines or indexes stay
 * open. */
static void lift_descriptors(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit))
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){limit.rlim_max, limit.rlim_max});
}

/*
 * Limits the worker's own memory, as far as it is writable, and the memory that is passed on. The latter
 * counts as a file, so RLIMIT_FSIZE is set, and does not depend on the session's own limit. A sanitizer's
 * memory is not limited.
 */
static void bound_memory(size_t memory)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	bound(RLIMIT_DATA, memory);
#endif
	bound(RLIMIT_FSIZE, memory);
	bound(RLIMIT_CORE, 0);
}

/* Drops all rights that the worker does not need. Returns NULL, or why that is not possible. */
static const char *confine(size_t memory)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {0};
	const char *never;

	never = filter_load_library();
	if (never)
		return never;
	prctl(PR_SET_NAME, WORKER_NAME);
	bound_memory(memory);
	lift_descriptors();
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* The process can't be read through /proc/PID, and there is no core file. */
	if (setresgid(getgid(), getgid(), getgid()) || setresuid(getuid(), getuid(), getuid()) ||
	    syscall(SYS_capset, &header, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL))
		return NEVER_SECCOMP;
	return filter_system_calls() ? NEVER_SECCOMP : NULL;
}

/* Signals of the terminal are for the session. SIGPROF, of the timer, ends a loop that takes too long. */
static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGPROF);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGPROF, SIG_DFL);
}

/* Limits of CPU time per request. Reading a large program's symbols takes less than a second. A name has less
 * time, because records wait for it. */
#define FILE_S 10
#define NAME_S 2

static void set_timer(int seconds)
{
	setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = seconds}}, NULL);
}

/* --- messages ------------------------------------------------------------------------------------- */

/* The last request. The process that started the worker is trusted, so requests are not checked. */
static union {
	struct ask ask;
	char bytes[sizeof(struct ask) + ASK_TEXT_MOST + 1];
} asked;
static size_t asked_size;

static bool receive_request(int *fd)
{
	asked_size = packet_receive(WORKER_FD, asked.bytes, sizeof(asked) - 1, fd);
	asked.bytes[asked_size] = '\0';
	return asked_size >= sizeof(asked.ask);
}

/* The text of this number after the request. */
static const char *asked_text(int number)
{
	const char *at = (const char *)(&asked.ask + 1), *end = asked.bytes + asked_size;

	while (number-- && at < end)
		at += strlen(at) + 1;
	return at < end ? at : "";
}

#define NO_DESCRIPTOR "the file can't be opened"
#define NO_ROOM	      "what was read of the file can't be passed on"

struct reply {
	struct answer answer;
	struct told_frame frames[FRAMES_MAX];
	char text[MESSAGE_MOST - sizeof(struct answer) - FRAMES_MAX * sizeof(struct told_frame)];
	int fd; /* of memory that is passed with it; -1: none */
};

static __u32 reply_text(struct reply *reply, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;
	__u32 at = reply->answer.nr_text;

	if (!size || size > sizeof(reply->text) - at)
		return -1;
	memcpy(reply->text + at, text, size);
	reply->answer.nr_text += size;
	return at;
}

static void send_reply(struct reply *reply)
{
	struct iovec parts[] = {{&reply->answer, sizeof(reply->answer)},
				{reply->frames, reply->answer.nr_frames * sizeof(reply->frames[0])},
				{reply->text, reply->answer.nr_text}};

	if (!packet_send(WORKER_FD, parts, 3, reply->fd))
		_exit(1);
	if (reply->fd >= 0)
		close(reply->fd);
}

static void put_why(struct reply *reply, const char *why)
{
	snprintf(reply->answer.why, sizeof(reply->answer.why), "%s", why ? why : "");
}

/* Asks nhmtap to open a debug file, since the worker may open none. */
static int open_debug(bool ours, const char *path)
{
	static struct reply reply;
	struct ask kept = asked.ask;
	int fd;

	reply = (struct reply){.answer = {.kind = ANSWER_OPEN, .ours = ours}, .fd = -1};
	reply_text(&reply, path);
	send_reply(&reply);
	if (!receive_request(&fd))
		_exit(0);
	asked.ask = kept;
	return fd;
}

/* Passes lists in one piece of sealed memory, so that they can't change any more. */
struct list {
	const void *items;
	size_t nr, size;
};

static void put_memory(struct reply *reply, const struct list *lists, size_t nr)
{
	static const __u64 end = 0;
	int fd = memfd_create(WORKER_NAME, MEMORY_FLAGS);
	bool whole = fd >= 0;

	for (size_t i = 0; i <= nr && whole; i++) {
		const char *at = i < nr ? lists[i].items : (const char *)&end;
		size_t left = i < nr ? lists[i].nr * lists[i].size : sizeof(end);

		if (i < nr)
			reply->answer.counts[i] = lists[i].nr;
		while (left && whole) {
			ssize_t put = write(fd, at, left);

			whole = put > 0;
			at += whole ? put : 0;
			left -= whole ? put : 0;
		}
	}
	reply->fd = fd;
	if (!whole || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)) {
		put_why(reply, NO_ROOM);
		reply->answer.no_room = true;
		if (fd >= 0)
			close(fd);
		reply->fd = -1;
	}
}

static void put_symbols(struct reply *reply, const struct read_file *file)
{
	const struct symbols *symbols = &file->symbols, *objects = &file->objects;
	const struct list lists[] = {
		{file->segments, file->nr_segments, sizeof(*file->segments)},
		{file->loaded, file->nr_loaded, sizeof(*file->loaded)},
		/* The others need no alignment. */
		{symbols->spans.list, symbols->spans.nr, sizeof(*symbols->spans.list)},
		{symbols->list, symbols->nr, sizeof(*symbols->list)},
		{objects->spans.list, objects->spans.nr, sizeof(*objects->spans.list)},
		{objects->list, objects->nr, sizeof(*objects->list)},
		{file->functions.list, file->functions.nr, sizeof(*file->functions.list)},
		{symbols->strings, symbols->strings_size, 1},
		{objects->strings, objects->strings_size, 1}};

	put_memory(reply, lists, ARRAY_SIZE(lists));
}

/* --- a file --------------------------------------------------------------------------------------- */

static struct image opened; /* the file for ASK_LOAD */
static bool is_open;

static struct known {
	struct known *next;
	__u32 id;
	struct lines *lines; /* at most one of the three is set */
	struct go_lines *go_lines;
	struct jit_lines *jit_lines;
	struct code_bytes code;
	struct symbol_index *function_index, *object_index;
} * all_known;

/* The pointer to what is kept of a file in the list; it points to NULL if there is nothing. */
static struct known **known_at(__u32 id)
{
	struct known **at = &all_known;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static size_t bytes_of(const struct known *known)
{
	size_t bytes = symbol_index_bytes(known->function_index) + symbol_index_bytes(known->object_index);

	if (known->lines)
		bytes += lines_bytes(known->lines) + known->code.size;
	if (known->go_lines)
		bytes += go_lines_bytes(known->go_lines);
	if (known->jit_lines)
		bytes += jit_lines_bytes(known->jit_lines);
	return bytes;
}

static void answer_open(struct reply *reply, int fd)
{
	const char *why;

	if (is_open)
		image_close(&opened);
	why = fd < 0 ? image_from_vdso(&opened) : image_from_file(&opened, fd);
	is_open = !why;
	put_why(reply, why);
	if (!why)
		image_build_id(&opened, reply->answer.build_id);
}

static void keep_known(struct reply *reply, const struct known *found)
{
	struct known *known = xmalloc(sizeof(*known));

	*known = *found;
	known->next = all_known;
	all_known = known;
	reply->answer.kept = true;
	reply->answer.only_lines = !known->function_index && !known->object_index;
	reply->answer.indexed = known->object_index != NULL;
	reply->answer.kept_bytes = bytes_of(known);
}

static void answer_load(struct reply *reply, int fd)
{
	const struct ask ask = asked.ask;
	static struct file_place place;
	char debug_dir[PATH_MAX], fetched_dir[PATH_MAX];
	struct read_file file;

	if (!is_open)
		_exit(1);
	snprintf(place.root, sizeof(place.root), "%s", asked_text(0));
	snprintf(place.path, sizeof(place.path), "%s", asked_text(1));
	snprintf(debug_dir, sizeof(debug_dir), "%s", asked_text(2));
	snprintf(fetched_dir, sizeof(fetched_dir), "%s", asked_text(3));
	read_file(&file, &opened,
		  &(struct read_what){ask.lines, ask.data, ask.data > 1, ask.few, ask.lines_most}, ask.most,
		  &(struct debug_folders){&place, {debug_dir, fetched_dir}, open_debug});
	is_open = false;
	put_symbols(reply, &file);
	reply->answer.lines_lack = file.lines_lack;
	reply->answer.no_room |= file.left_out;
	if ((file.lines || file.go_lines || file.function_index || file.object_index) && reply->fd >= 0) {
		keep_known(reply, &(struct known){.id = ask.id,
						  .lines = file.lines,
						  .go_lines = file.go_lines,
						  .code = file.code,
						  .function_index = file.function_index,
						  .object_index = file.object_index});
		file.lines = NULL;
		file.go_lines = NULL;
		file.code = (struct code_bytes){0};
		file.function_index = file.object_index = NULL;
	}
	read_file_release(&file);
}

static void answer_map(struct reply *reply, int fd)
{
	const struct ask ask = asked.ask;
	struct jit_lines *lines = ask.lines && jitdump_is(fd) ? jit_lines_open(fd, ask.most) : NULL;
	struct read_file file = {0};
	bool half = false;
	const char *why = jitdump_is(fd) ? jitdump_symbols(&file.symbols, fd, ask.most)
					 : jit_symbols(&file.symbols, fd, ask.most, ask.grows, &half);

	put_why(reply, why);
	reply->answer.half_line = half;
	reply->answer.no_room = why && !strcmp(why, JIT_NO_ROOM);
	if (!why)
		put_symbols(reply, &file);
	if (lines && reply->fd >= 0)
		keep_known(reply, &(struct known){.id = ask.id, .jit_lines = lines});
	else
		jit_lines_close(lines);
	symbols_release(&file.symbols);
}

static void answer_table(struct reply *reply, int fd)
{
	struct unwind_table table = {0};
	struct image image;
	const char *why = fd < 0 ? image_from_vdso(&image) : image_from_file(&image, fd);

	if (!why) {
		why = unwind_table_of_image(&table, &image);
		image_close(&image);
	}
	put_why(reply, why);
	if (!why) {
		const struct list lists[] = {{table.pages, table.nr_pages, sizeof(*table.pages)},
					     {table.rules, table.nr_rules, sizeof(*table.rules)},
					     {table.rows, table.nr_rows, sizeof(*table.rows)}};

		put_memory(reply, lists, 3);
		reply->answer.base = table.base;
	}
	unwind_table_release(&table);
}

/* --- code ------------------------------------------------------------------------------------------ */

static const char *code_why = CODE_LIBRARY; /* why code can't be shown; NULL: it can */

/* The part of the file from the offset on that is code, at most as much as was asked for. */
static const struct segment *segment_at(const struct segment *list, size_t nr, __u64 offset)
{
	for (size_t i = 0; i < nr; i++)
		if (offset >= list[i].offset && offset - list[i].offset < list[i].size)
			return &list[i];
	return NULL;
}

static const char *read_code(const struct image *image, struct told_instruction **list, size_t *nr_found)
{
	size_t nr, size;
	struct segment *segments = image_segments(image, &nr);
	const struct segment *segment = segment_at(segments, nr, asked.ask.address);
	__u8 *code;
	const char *why = CODE_NOWHERE;

	if (segment) {
		size = segment->size - (asked.ask.address - segment->offset);
		size = size < asked.ask.most ? size : asked.ask.most;
		code = xmalloc(size);
		if (image_read(image, code, size, asked.ask.address))
			why = disassemble(code, size, asked.ask.address - segment->offset + segment->address,
					  gelf_getclass(image->elf) == ELFCLASS64, list, nr_found);
		free(code);
	}
	free(segments);
	return why;
}

static void answer_code(struct reply *reply, int fd)
{
	struct told_instruction *list = NULL;
	struct image image;
	size_t nr = 0;
	const char *why = code_why ?: image_from_file(&image, fd);

	if (code_why && fd >= 0)
		close(fd);
	if (!why) {
		why = read_code(&image, &list, &nr);
		image_close(&image);
	}
	put_why(reply, why);
	if (!why)
		put_memory(reply, &(const struct list){list, nr, sizeof(*list)}, 1);
	free(list);
}

/* --- names ---------------------------------------------------------------------------------------- */

static __u32 put_file(struct reply *reply, const struct source_place *place)
{
	char path[2 * PATH_MAX];

	if (!place->folder ||
	    snprintf(path, sizeof(path), "%s/%s", place->folder, place->file) >= (int)sizeof(path))
		return reply_text(reply, place->file);
	return reply_text(reply, path);
}

static size_t find_places(const struct known *known, __u64 address, struct source_place *places)
{
	return known->lines	  ? lines_find(known->lines, address, places, FRAMES_MAX)
	       : known->go_lines  ? go_lines_find(known->go_lines, address, places)
	       : known->jit_lines ? jit_lines_find(known->jit_lines, address, places)
				  : 0;
}

static void put_symbol(struct reply *reply, struct symbol_index *index)
{
	struct indexed_symbol symbol = {0};

	if (index)
		symbol = symbol_index_find(index, asked.ask.address);
	reply->answer.symbol = reply_text(reply, symbol.name);
	reply->answer.symbol_begin = symbol.begin;
	reply->answer.endless = symbol.endless;
}

static void answer_name(struct reply *reply, int fd)
{
	struct source_place places[FRAMES_MAX] = {0};
	const struct known *known = *known_at(asked.ask.id);
	size_t nr = known ? find_places(known, asked.ask.address, places) : 0;

	if (nr == 1 && !places[0].function && !places[0].file)
		nr = 0;
	for (size_t i = 0; i < nr; i++)
		reply->frames[i] =
			(struct told_frame){reply_text(reply, places[i].function),
					    put_file(reply, &places[i]), places[i].line, 0, places[i].entry};
	reply->answer.nr_frames = nr;
	put_symbol(reply, known ? known->function_index : NULL);
	reply->answer.kept_bytes = known ? bytes_of(known) : 0;
	if (known && known->lines)
		reply->answer.lines_lack = lines_lack(known->lines);
}

static void answer_datum(struct reply *reply, int fd)
{
	const struct known *known = *known_at(asked.ask.id);

	put_symbol(reply, known ? known->object_index : NULL);
	reply->answer.kept_bytes = known ? bytes_of(known) : 0;
}

/* The type is the function of a frame, and the field its file. The variable, if one is told, is that of a
 * second frame, which begins at the offset in it, and has a line if that is known. */
static void answer_type(struct reply *reply, int fd)
{
	const struct known *known = *known_at(asked.ask.id);
	struct typed typed;
	const char *why = !known || !known->lines ? TYPE_NO_DWARF
			  : asked.ask.kind == ASK_TYPE
				  ? type_of_variable(known->lines, asked.ask.address, &typed)
				  : type_of_access(known->lines, &known->code, asked.ask.address, &typed);

	put_why(reply, why);
	if (!why) {
		reply->frames[0] =
			(struct told_frame){reply_text(reply, typed.type),
					    reply_text(reply, typed.field[0] ? typed.field : NULL), 0, 0, 0};
		reply->frames[1] = (struct told_frame){reply_text(reply, typed.variable), -1, !typed.indexed,
						       0, typed.offset};
		reply->answer.nr_frames = typed.variable[0] ? 2 : 1;
	}
	reply->answer.kept_bytes = known ? bytes_of(known) : 0;
}

static void forget_known(void)
{
	struct known **at = known_at(asked.ask.id), *known = *at;

	if (!known)
		return;
	*at = known->next;
	lines_close(known->lines);
	go_lines_close(known->go_lines);
	code_bytes_release(&known->code);
	jit_lines_close(known->jit_lines);
	symbol_index_close(known->function_index);
	symbol_index_close(known->object_index);
	free(known);
}

/* --- its life ------------------------------------------------------------------------------------- */

static void __attribute__((noreturn)) serve_requests(void)
{
	static void (*const answers[])(struct reply * reply, int fd) = {
		[ASK_OPEN] = answer_open, [ASK_LOAD] = answer_load,   [ASK_MAP] = answer_map,
		[ASK_NAME] = answer_name, [ASK_TABLE] = answer_table, [ASK_CODE] = answer_code,
		[ASK_TYPE] = answer_type, [ASK_DATUM] = answer_datum, [ASK_ACCESS] = answer_type,
	};
	static struct reply reply;
	int fd;

	while (receive_request(&fd)) {
		set_timer(ask_is_of_known(asked.ask.kind) ? NAME_S : FILE_S);
		reply.answer = (struct answer){.kind = ANSWER_DONE};
		reply.fd = -1;
		if (asked.ask.kind == ASK_FORGET) {
			forget_known();
			continue;
		}
		if (asked.ask.kind >= ARRAY_SIZE(answers))
			_exit(1);
		if (fd == FD_CUT)
			put_why(&reply, NO_DESCRIPTOR);
		else
			answers[asked.ask.kind](&reply, fd);
		set_timer(0);
		send_reply(&reply);
	}
	_exit(0);
}

static void __attribute__((noreturn)) refuse_all(const char *why)
{
	static struct reply reply = {.answer = {.kind = ANSWER_NEVER}, .fd = -1};
	int fd;

	put_why(&reply, why);
	if (receive_request(&fd))
		send_reply(&reply);
	_exit(1);
}

/* Called if memory runs out, because of lines read before or of the current request. */
static void tell_no_memory(void *context)
{
	static struct reply reply = {.answer = {.kind = ANSWER_MEMORY}, .fd = -1};

	send_reply(&reply);
}

/* Memory that was freed is kept for the next file, because the kernel would have to clear each page again. */
#define KEPT_MOST (16UL << 20)

static void keep_memory(size_t memory)
{
	int kept = memory / 32 < KEPT_MOST ? memory / 32 : KEPT_MOST;

	mallopt(M_MMAP_THRESHOLD, kept);
	mallopt(M_TRIM_THRESHOLD, kept);
	mallopt(M_TOP_PAD, kept / 16);
}

/* Runs before main(), so that test programs, which have other main functions, can start workers as well. */
static void __attribute__((constructor)) begin_worker(int argc, char **argv)
{
	const char *never;
	size_t memory;

	if (argc != 2 || strcmp(argv[0], WORKER_NAME))
		return;
	memory = strtoull(argv[1], NULL, 10);
	reports_keep();
	block_signals();
	keep_memory(memory);
	if (strstr(argv[1], WORKER_OF_CODE))
		code_why = disassemble_load_library();
	never = confine(memory);
	if (never)
		refuse_all(never);
	memory_last_words(tell_no_memory, NULL);
	serve_requests();
}
