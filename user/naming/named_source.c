// SPDX-License-Identifier: GPL-2.0-only
#include "naming/named_source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "naming/demangle.h"
#include "naming/foreign.h"

/* --- reading ---------------------------------------------------------------------------------- */

const char *source_why(int error)
{
	switch (error) {
	case ETIMEDOUT:
		return FOREIGN_STUCK;
	case ECHILD:
		return WORKER_UNSTARTED;
	case EMEDIUMTYPE:
		return "it is no regular file";
	case EFBIG:
		return "the file is larger than what is read";
	case EKEYREJECTED:
		return "the file is another user's";
	case ELOOP:
	case EXDEV:
		return "a link leads to the file";
	case ENOENT:
	case ENOTDIR:
	case ESRCH:
		return "there is no such file";
	case EACCES:
	case EPERM:
		return "the file may not be read";
	}
	return "the file can't be opened";
}

bool source_failed(int error)
{
	return error == ETIMEDOUT || error == ECHILD;
}

/* Stores a sentence forever. There are few different ones, and each is stored once. */
static const char *constant(const char *why)
{
	static char known[32][WHY_MOST];
	size_t i = 0;

	while (i < ARRAY_SIZE(known) - 1 && known[i][0] && strcmp(known[i], why))
		i++;
	if (!known[i][0])
		snprintf(known[i], sizeof(known[i]), "%s", why);
	return strcmp(known[i], why) ? "the file can't be read" : known[i];
}

/* Sets why the source can't be read by the worker's answer (NULL: the request failed). Returns the answer, or
 * NULL if it can't be read. */
static const struct answer *take_answer(struct named_source *source, const struct answer *answer)
{
	source->failed = !answer;
	source->no_room = answer && answer->no_room;
	source->why = !answer ? worker_why(source->worker) : answer->why[0] ? constant(answer->why) : NULL;
	return source->why ? NULL : answer;
}

bool source_open(struct named_source *source, const struct file_place *place)
{
	bool vdso = !strcmp(place->path, "[vdso]");
	struct stat stat = {0};
	struct question_of_worker question = {.ask = {.kind = ASK_OPEN},
					      .fd = vdso ? -1 : place_open(place, &stat)};
	const struct answer *answer;

	if (!vdso && question.fd < 0) {
		source->refused = guarded_refused(errno);
		source->failed = source_failed(errno);
		source->why = source_why(errno);
		return false;
	}
	source->owner = stat.st_uid;
	answer = take_answer(source, worker_ask(source->worker, &question));
	if (answer)
		strcpy(source->build_id, answer->build_id);
	return answer;
}

/* Takes over the symbols of an answer. Invalid symbols are an error: only a worker that an attacker has taken
 * over sends them. */
static void take_symbols(struct named_source *source, struct sealed *sealed, const struct answer *answer)
{
	struct told_symbols told;

	if (!worker_symbols(sealed, answer, &told)) {
		sealed_release(sealed);
		source->failed = true;
		source->why = WORKER_FAILED;
		return;
	}
	source->symbols = told.functions;
	source->nameless = told.nameless;
	source->objects = told.objects;
	source->segments = told.segments;
	source->nr_segments = told.nr_segments;
	source->loaded = told.loaded;
	source->nr_loaded = told.nr_loaded;
}

static __u32 new_id(void)
{
	static __u32 last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

#define ZSTD                                                                                                 \
	"compressed with zstd, which elfutils reads from 0.189 on (objcopy --decompress-debug-sections "     \
	"writes a readable copy)"

#define LARGE	     "is larger than what the memory for names allows"
#define SPLIT_LARGE  "inlined functions are in a .dwo or .dwp file that " LARGE
#define ALL_LARGE    "debug information " LARGE
#define SHARED_LARGE "dwz has moved debug information to a file that " LARGE
#define RAISED	     " (--memory raises it)"

static const char *const lines_whys[NR_LINES_LACK] = {
	[LINES_COMPRESSED] = "debug sections are " ZSTD,
	[LINES_SHARED_ABSENT] = "dwz has moved debug information to a file that is not found "
				"(.gnu_debugaltlink; the debug package may have it)",
	[LINES_SHARED_COMPRESSED] = "the file to which dwz has moved debug information is " ZSTD,
	[LINES_SPLIT] =
		"inlined functions are in .dwo files that are not found, neither where the compiler "
		"wrote them nor beside the program, nor in a .dwp file there (-gno-split-dwarf leaves "
		"them in the program)",
	[LINES_SPLIT_LARGE] = SPLIT_LARGE,
	[LINES_SPLIT_COMPRESSED] = "the .dwo or .dwp file with inlined functions is " ZSTD,
	[LINES_LARGE] = ALL_LARGE,
	[LINES_SHARED_LARGE] = SHARED_LARGE,
	[LINES_NO_ROOM] = "the memory for names has no room for their debug information beside that of other "
			  "files" RAISED,
	[LINES_GO] = "what is inlined in Go's code without debug information has its own line and its "
		     "caller's name "
		     "(go build without -ldflags=-w keeps the names)",
};

/* The same where a larger --memory gives more. */
static const char *const limited_whys[NR_LINES_LACK] = {
	[LINES_SPLIT_LARGE] = SPLIT_LARGE RAISED,
	[LINES_LARGE] = ALL_LARGE RAISED,
	[LINES_SHARED_LARGE] = SHARED_LARGE RAISED,
};

static const char *lines_why_of(const struct named_source *source, const struct answer *answer)
{
	__u32 lack = answer->lines_lack;

	if (lack >= NR_LINES_LACK)
		return NULL;
	return source->limited && limited_whys[lack] ? limited_whys[lack] : lines_whys[lack];
}

/* Files of split DWARF are opened when they are needed. */
static void keep_place(struct named_source *source, const struct file_place *place, const char *debug_dir)
{
	source->place = xmalloc(sizeof(*source->place));
	*source->place = *place;
	source->debug_dir = debug_dir;
}

/* Notes under which number the worker keeps what it has not sent. */
static void take_kept(struct named_source *source, const struct question_of_worker *question,
		      const struct answer *answer)
{
	source->id = question->ask.id;
	source->generation = worker_generation(source->worker);
	source->kept = answer->kept;
	source->indexed = answer->indexed;
	source->only_lines = answer->only_lines;
	source->kept_bytes = answer->kept_bytes;
}

void source_load(struct named_source *source, const struct file_place *place,
		 const struct naming_settings *settings, size_t most)
{
	char text[sizeof(place->root) + sizeof(place->path) + 2 * PATH_MAX], fetched[PATH_MAX];
	struct sealed sealed = {0};
	struct question_of_worker question = {
		.ask = {.kind = ASK_LOAD,
			.id = new_id(),
			.most = settings->memory,
			.lines = settings->lines,
			.lines_most = most,
			.few = settings->few_lines,
			.data = settings->types ? 2 : settings->data},
		.fd = -1,
		.text = text,
		.place = place,
		.owner = source->owner,
		.debug_dir = settings->debug_dir,
		.sealed = &sealed,
	};
	const struct answer *answer;

	source->elf = true;
	question.size = sprintf(text, "%s", place->root) + 1;
	question.size += sprintf(text + question.size, "%s", place->path) + 1;
	question.size += snprintf(text + question.size, PATH_MAX, "%.4000s", settings->debug_dir) + 1;
	debug_dirs_fetched(fetched, sizeof(fetched));
	question.size += snprintf(text + question.size, PATH_MAX, "%.4000s", fetched) + 1;
	answer = take_answer(source, worker_ask(source->worker, &question));
	if (!answer)
		return;
	source->types = settings->types;
	source->lines = settings->lines;
	source->limited = (settings->sparing || settings->few_lines) && settings->memory < NAMING_MEMORY;
	take_kept(source, &question, answer);
	source->lines_left_out = settings->few_lines && answer->lines_lack == LINES_LARGE;
	if (answer->lines_lack == LINES_SPLIT)
		keep_place(source, place, settings->debug_dir);
	else
		source->lines_why = lines_why_of(source, answer);
	take_symbols(source, &sealed, answer);
}

void source_load_map(struct named_source *source, int fd, size_t most, bool lines, bool grows)
{
	struct sealed sealed = {0};
	struct question_of_worker question = {
		.ask = {.kind = ASK_MAP, .id = new_id(), .most = most, .lines = lines, .grows = grows},
		.fd = fd,
		.sealed = &sealed};
	const struct answer *answer = take_answer(source, worker_ask(source->worker, &question));

	if (!answer)
		return;
	source->half_line = answer->half_line;
	take_kept(source, &question, answer);
	take_symbols(source, &sealed, answer);
}

bool source_worker_failed(const struct named_source *source)
{
	return source->failed && !strcmp(source->why, WORKER_FAILED);
}

bool source_is_for_later(const struct named_source *source)
{
	return source->failed &&
	       (!strcmp(source->why, WORKER_RESTS) || !strcmp(source->why, WORKER_UNSTARTED) ||
		!strcmp(source->why, FOREIGN_STUCK));
}

bool source_is_stale(const struct named_source *source)
{
	return source->kept && source->generation != worker_generation(source->worker);
}

bool source_has_only_lines_kept(const struct named_source *source)
{
	return source->kept && source->only_lines;
}

void source_drop_lines(struct named_source *source)
{
	if (!source_is_stale(source))
		worker_forget(source->worker, source->id);
	source->kept = false;
	source->kept_bytes = 0;
	source->lines_left_out = true;
	source->lines_why = lines_whys[LINES_NO_ROOM];
	source->read_at = clock_seconds();
}

void source_forget_names(struct named_source *source)
{
	map_release(&source->names);
	pool_release(&source->pool);
}

void source_empty(struct named_source *source)
{
	source->segments = NULL;
	source->loaded = NULL;
	source->nr_segments = source->nr_loaded = 0;
	source->nameless = (struct nameless){0};
	source->objects = (struct symbols){0};
	symbols_release(&source->symbols);
	if (source->kept && !source_is_stale(source))
		worker_forget(source->worker, source->id);
	source->kept = source->lines_left_out = source->half_line = false;
	source->lines_why = NULL;
	source->kept_bytes = 0;
	free(source->place);
	source->place = NULL;
	source_forget_names(source);
	map_release(&source->shown);
	map_release(&source->told);
	pool_release(&source->texts);
}

size_t source_bytes(const struct named_source *source)
{
	return sizeof(*source) + source->alias_bytes + symbols_bytes(&source->symbols) +
	       symbols_bytes(&source->objects) + source->nameless.nr * sizeof(*source->nameless.list) +
	       source->pool.bytes + source->texts.bytes + map_bytes(&source->names) +
	       map_bytes(&source->shown) + map_bytes(&source->told) +
	       (source->nr_segments + source->nr_loaded) * sizeof(*source->segments) + source->kept_bytes +
	       (source->place ? sizeof(*source->place) : 0);
}

/* --- names ------------------------------------------------------------------------------------ */

/* Returns the stored copy of a text that the worker sent; each text is stored once. NULL stays NULL. */
static const char *keep_text(struct named_source *source, const char *text)
{
	__u64 key = text ? map_key(text, 0) : 0;
	char *known = text ? map_find(&source->told, key) : NULL;

	if (!text || (known && !strcmp(known, text)))
		return known;
	text = pool_text(&source->texts, text, strlen(text));
	if (!known)
		map_put(&source->told, key, (char *)text);
	return text;
}

/* Returns a symbol in its shown form (demangled), which is made once. `symbol` must live as long as the
 * source's texts. */
static const char *shown_symbol(struct named_source *source, const char *symbol)
{
	char text[NAMING_SYMBOL_MAX + 1];
	const char *known = symbol ? map_find(&source->shown, (uintptr_t)symbol) : NULL;

	if (known || !symbol)
		return known;
	demangle(symbol, text, sizeof(text));
	if (!strcmp(symbol, text))
		return symbol;
	known = keep_text(source, text);
	map_put(&source->shown, (uintptr_t)symbol, (char *)known);
	return known;
}

/* Asks the worker for the source lines, or the type, of an address. Returns NULL if it failed; then only the
 * symbol table is used. */
static const struct answer *ask_kept(struct named_source *source, enum ask_kind kind, __u64 address)
{
	struct question_of_worker question = {.ask = {.kind = kind, .id = source->id, .address = address},
					      .fd = -1,
					      .place = source->place,
					      .owner = source->owner,
					      .debug_dir = source->debug_dir};
	const struct answer *answer = worker_ask(source->worker, &question);

	if (question.unsent)
		return NULL;
	source->kept_bytes = answer ? answer->kept_bytes : 0;
	source->kept = answer;
	source->failed = !answer;
	if (!answer && source->lines)
		source->lines_why = worker_why(source->worker);
	return answer;
}

/* Returns a symbol without its version if it is one of an ELF file. */
static const char *plain_name(struct named_source *source, const char *name)
{
	size_t length = source->elf ? unversioned(name) : strlen(name);
	const char *known;

	if (!name[length])
		return name;
	known = map_find(&source->shown, (uintptr_t)name);
	if (known)
		return known;
	known = pool_text(&source->texts, name, length);
	map_put(&source->shown, (uintptr_t)name, (char *)known);
	return known;
}

/* Sets the function of a frame. `name` is mangled if it is a name of C++ or Rust. An empty one, as any file
 * may have, is none. */
static void set_function(struct named_source *source, struct frame *frame, const char *name)
{
	const char *symbol = shown_symbol(source, name);

	frame->symbol = symbol && *symbol ? symbol : NULL;
	frame->linkage = frame->symbol && symbol != name ? name : NULL;
}

static void set_frames(struct named_source *source, struct name *name, const struct answer *answer,
		       __u64 address)
{
	struct frame *frames = pool_take(&source->pool, answer->nr_frames * sizeof(*frames));
	const struct told_frame *last = answer_frame(answer, answer->nr_frames - 1);

	for (size_t i = 0; i < answer->nr_frames; i++) {
		const struct told_frame *told = answer_frame(answer, i);
		const char *file = keep_text(source, answer_text(answer, told->file));
		bool known = file && *file;

		frames[i] = (struct frame){.file = known ? file : NULL, .line = known ? told->line : 0};
		set_function(source, &frames[i], keep_text(source, answer_text(answer, told->function)));
	}
	if (last->entry && last->entry <= address)
		frames[answer->nr_frames - 1].offset = address - last->entry;
	name->frames = frames;
	name->nr = answer->nr_frames;
}

/* A symbol as the file has it: its name, which lives as long as the source, and where it begins. */
struct named_symbol {
	const char *name; /* NULL: there is none */
	__u64 begin;
};

/* Whether what was sent begins behind one address, and at another or before it. */
static bool begins_within(const struct named_source *source, const struct symbols *symbols, __u64 behind,
			  __u64 address)
{
	return symbols_begun(symbols, address) > symbols_begun(symbols, behind) ||
	       nameless_begun(&source->nameless, address) > nameless_begun(&source->nameless, behind);
}

/* Of the symbols that were sent and those in an index, the one that begins last is the innermost. One of the
 * index without a size ends also where something begins that was sent. */
static struct named_symbol symbol_of(struct named_source *source, const struct symbols *symbols,
				     __u64 address, const struct answer *answer)
{
	const struct symbol *symbol = symbols_find(symbols, address);
	const char *indexed = answer ? answer_text(answer, answer->symbol) : NULL;

	if (indexed && answer->endless && begins_within(source, symbols, answer->symbol_begin, address))
		indexed = NULL;
	if (indexed && answer->symbol_begin <= address && (!symbol || symbol->address < answer->symbol_begin))
		return (struct named_symbol){keep_text(source, indexed), answer->symbol_begin};
	return symbol ? (struct named_symbol){symbol_name(symbols, symbol), symbol->address}
		      : (struct named_symbol){0};
}

/* Sets the name of the function by the symbol table, because other tools show it too: "f.cold",
 * "f.part.0". */
static void set_symbol(struct named_source *source, struct name *name, const struct named_symbol *symbol,
		       __u64 address)
{
	struct frame *frames = (struct frame *)name->frames;

	if (!name->nr) {
		name->frames = frames = pool_take(&source->pool, sizeof(*frames));
		name->nr = 1;
	}
	set_function(source, &frames[name->nr - 1], plain_name(source, symbol->name));
	frames[name->nr - 1].offset = address - symbol->begin;
}

struct name *source_name_at(struct named_source *source, __u64 address)
{
	const struct answer *answer = source->kept ? ask_kept(source, ASK_NAME, address) : NULL;
	const struct named_symbol symbol = symbol_of(source, &source->symbols, address, answer);
	struct name *name = pool_take(&source->pool, sizeof(*name));

	name->build_id = source->build_id[0] ? source->build_id : NULL;
	name->lines_why = answer && answer->lines_lack ? lines_why_of(source, answer) : source->lines_why;
	if (answer && answer->nr_frames)
		set_frames(source, name, answer, address);
	if (symbol.name && *symbol.name)
		set_symbol(source, name, &symbol, address);
	if (!name->nr) {
		const struct nameless_function *function = nameless_find(&source->nameless, address);

		name->nameless = function;
		name->function_offset = function ? address - function->begin : 0;
		name->why = source->failed    ? worker_why(source->worker)
			    : source->no_room ? SOURCE_NO_ROOM
					      : "no symbol is there";
		name->failed = source->failed;
		name->no_room = source->no_room;
	}
	return name;
}

/* Returns the answer. */
static const struct answer *set_type(struct named_source *source, struct name *name, enum ask_kind kind,
				     __u64 address)
{
	const struct answer *answer = source->kept ? ask_kept(source, kind, address) : NULL;
	const struct told_frame *told;

	name->untyped = TYPE_NO_DWARF;
	if (answer && answer->why[0])
		name->untyped = constant(answer->why);
	if (!answer || answer->why[0] || !answer->nr_frames)
		return answer;
	told = answer_frame(answer, 0);
	name->type = keep_text(source, answer_text(answer, told->function));
	name->field = keep_text(source, answer_text(answer, told->file));
	name->untyped = name->type ? NULL : TYPE_UNDESCRIBED;
	return answer;
}

struct name *source_datum_at(struct named_source *source, __u64 address)
{
	const struct answer *answer =
		source->kept && source->indexed ? ask_kept(source, ASK_DATUM, address) : NULL;
	const struct named_symbol symbol = symbol_of(source, &source->objects, address, answer);
	struct name *name = pool_take(&source->pool, sizeof(*name));
	struct frame *frame;

	name->build_id = source->build_id[0] ? source->build_id : NULL;
	if (source->types)
		set_type(source, name, ASK_TYPE, address);
	name->no_room = source->no_room && !symbol.name;
	if (!symbol.name) {
		name->why = source->no_room ? SOURCE_NO_ROOM : "no symbol is there";
		return name;
	}
	frame = pool_take(&source->pool, sizeof(*frame));
	set_function(source, frame, plain_name(source, symbol.name));
	frame->offset = address - symbol.begin;
	name->frames = frame;
	name->nr = 1;
	return name;
}

struct name *source_access_at(struct named_source *source, __u64 address)
{
	struct name *name = pool_take(&source->pool, sizeof(*name));
	const struct answer *answer = set_type(source, name, ASK_ACCESS, address);
	const struct told_frame *variable;
	struct frame *frame;

	if (!name->type || answer->nr_frames < 2) {
		name->why = "no variable is known to be there";
		return name;
	}
	variable = answer_frame(answer, 1);
	frame = pool_take(&source->pool, sizeof(*frame));
	set_function(source, frame, keep_text(source, answer_text(answer, variable->function)));
	frame->offset = variable->entry;
	name->indexed = !variable->line;
	name->frames = frame;
	name->nr = 1;
	return name;
}
