// SPDX-License-Identifier: GPL-2.0-only
#include "naming/codes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/interned.h"
#include "base/map.h"
#include "base/memory.h"
#include "naming/foreign.h"
#include "naming/pool.h"
#include "naming/untyped.h"
#include "record/record.h"

/* Texts, each of which is stored once. */
struct code_texts {
	struct pool pool;
	struct map map; /* by map_key() */
};

/* An address of a process, and what is asked for. */
struct question {
	__u64 address;
	__u32 pid;
	__u32 detail;
};

/* The key of an answer. A place in a file has the same answer for each process that has it mapped, and a
 * kernel address for all processes. Code made at run time belongs to one process. */
struct answer_key {
	struct mapped_file
		*file; /* NULL: not known, or the kernel; referenced, so that its address is not reused */
	__u64 address; /* offset if `file` is a regular file or the vdso */
	__u64 life;    /* of the process, see struct spot */
	__u32 pid;     /* 0: any process */
	__u32 detail;
};

struct code_answer {
	__u32 number; /* of the code */
	__u64 *cause; /* the counter of the account */
	/* Of the kernel's code: other code was at the address, and as of which notes and since when. */
	bool ambiguous;
	__u64 changes, since;
	__u64 asked; /* of code that was made at run time: CLOCK_MONOTONIC, ns */
};

/* A question that was answered, and how. To look where the address was mapped takes longer than all else, and
 * samples come from the same addresses again and again. */
#define RECENT 256
struct recent {
	struct question asked;
	char comm[16];
	__u64 moment; /* see moment_of() */
	struct spot spot;
	__u32 place; /* number */
};

struct codes {
	struct mappings *mappings, *data;
	const struct ksymbols *ksymbols;
	struct background *background;
	struct code_account *account;
	__u64 since, deadline, waiting;
	__u64 seen; /* see codes_seen() */
	struct code_texts texts;
	struct interned places;	     /* struct answer_key */
	struct code_answer *answers; /* by the place's number */
	size_t room;
	struct recent *recent; /* RECENT; those of another moment are none */
	__u64 changes;	       /* of `since` and of the places' numbers */
	struct interned codes; /* struct code */
	struct interned
		files; /* const struct mapped_file *, with a build-id, by which the path is verified */
	struct {
		struct name name;
		struct frame frame;
		bool ambiguous;
	} made;	      /* see look_in_ksymbols() */
	char **paths; /* by the file's number: the path to open it by; NULL: none */
	size_t room_paths;
};

bool address_is_kernel(__u64 address)
{
	return address >> 63;
}

bool code_tells_address(const struct code *code)
{
	return code->has_address ||
	       (code->has_offset && !(code->has_function && code->function == code->offset));
}

struct codes *codes_new(struct mappings *mappings, struct mappings *data, const struct ksymbols *ksymbols,
			struct background *background, struct code_account *account, __u64 since,
			__u64 deadline, __u64 waiting)
{
	struct codes *codes = xcalloc(1, sizeof(*codes));

	codes->mappings = mappings;
	codes->data = data;
	codes->ksymbols = ksymbols;
	codes->background = background;
	codes->account = account;
	codes->since = since;
	codes->deadline = deadline;
	codes->waiting = waiting;
	codes->recent = xcalloc(RECENT, sizeof(*codes->recent));
	codes->changes = 1;
	interned_init(&codes->places, sizeof(struct answer_key));
	interned_init(&codes->codes, sizeof(struct code));
	interned_init(&codes->files, sizeof(const struct mapped_file *));
	return codes;
}

void codes_seen(struct codes *codes, __u64 moment)
{
	codes->seen = moment;
}

static void release_texts(struct code_texts *texts)
{
	map_release(&texts->map);
	pool_release(&texts->pool);
}

void codes_release(struct codes *codes)
{
	if (!codes)
		return;
	release_texts(&codes->texts);
	for (size_t i = 0; i < codes->files.nr; i++)
		free(codes->paths[i]);
	free(codes->paths);
	for (size_t i = 0; i < codes->places.nr; i++)
		mapped_file_put(((const struct answer_key *)interned_at(&codes->places, i))->file);
	interned_release(&codes->files);
	interned_release(&codes->places);
	interned_release(&codes->codes);
	free(codes->answers);
	free(codes->recent);
	free(codes);
}

static const char *keep_text(struct codes *codes, const char *string)
{
	__u64 key = string ? map_key(string, 0) : 0;
	char *text;

	if (!string)
		return NULL;
	for (size_t at = 0; (text = map_find_next(&codes->texts.map, key, &at));)
		if (!strcmp(text, string))
			return text;
	text = pool_text(&codes->texts.pool, string, strlen(string));
	map_put(&codes->texts.map, key, text);
	return text;
}

static bool is_late(const struct codes *codes)
{
	return codes->deadline && clock_ns(CLOCK_MONOTONIC) > codes->deadline;
}

/* --- one address ------------------------------------------------------------------------------ */

/* The arguments of background_name(). */
struct place_asked {
	enum background_kind kind;
	const char *path, *build_id;
	struct map_writer writer; /* of what the process says of its code */
	__u64 address;
	char text[PATH_MAX];
};

/* The same as mapped_file_path(), but looked up only once per file and interval. */
static const char *path_of(struct codes *codes, const struct mapped_file *file, char *text, size_t size)
{
	size_t known = codes->files.nr;
	const char *path;
	__u32 number;

	if (!file->build_id[0])
		return mapped_file_path(file, text, size);
	number = interned_number(&codes->files, &file);
	if (number == known) {
		path = mapped_file_path(file, text, size);
		codes->paths = xroom(codes->paths, number, &codes->room_paths, sizeof(*codes->paths));
		codes->paths[number] = path ? xstrdup(path) : NULL;
	}
	return codes->paths[number];
}

/* Returns false if there is no file to look in. `generation`: see mappings_jit(). */
static bool find_place(struct codes *codes, const struct question *question, const struct spot *spot,
		       unsigned int generation, struct place_asked *at)
{
	at->address = question->address;
	at->path = at->build_id = NULL;
	at->writer = (struct map_writer){.user = -1};
	if (address_is_kernel(question->address)) {
		at->kind = NAME_OF_KERNEL;
		return true;
	}
	if (spot->file->kind == FILE_ANONYMOUS) {
		at->kind = NAME_OF_JIT;
		at->path = mappings_jit(codes->mappings, question->pid, spot->life, generation, &at->writer,
					at->text, sizeof(at->text));
		return at->path;
	}
	at->kind = NAME_OF_FILE;
	at->address = spot->offset;
	at->path = path_of(codes, spot->file, at->text, sizeof(at->text));
	if (spot->file->build_id[0]) {
		at->build_id = spot->file->build_id;
		if (!at->path)
			at->path = spot->file->path; /* see look_below_ours() */
	}
	return at->path;
}

/* The name of code that the kernel has made since kallsyms was read; NULL: the address is in no such code. It
 * is valid until the next call. */
static const struct name *look_in_ksymbols(struct codes *codes, __u64 address)
{
	const struct ksymbol *symbol =
		ksymbols_find(codes->ksymbols, address, codes->since, &codes->made.ambiguous);

	if (!symbol)
		return NULL;
	codes->made.frame = (struct frame){.symbol = symbol->name, .offset = address - symbol->begin};
	codes->made.name = (struct name){.module = symbol->module, .frames = &codes->made.frame, .nr = 1};
	return &codes->made.name;
}

/* Code that the kernel had made before the first note may go while kallsyms is read, and be in neither. Then
 * the note of its going has its name. */
static const struct name *look_in_latest(struct codes *codes, __u64 address, const struct name *nameless)
{
	const struct name *name = NULL;

	if (codes->ksymbols->read) {
		codes->ksymbols->read(codes->ksymbols->context);
		name = look_in_ksymbols(codes, address);
	}
	return name ? name : nameless;
}

/* Whether a file was read, and has no name for the address. */
static bool is_nameless(const struct name *name)
{
	return name && !name->nr && !name->refused && !name->failed;
}

/* Whether code that was made at run time may have its name elsewhere. A map that was refused is another
 * user's, who may have left it there or put it in the way. */
static bool is_looked_for(const struct name *name)
{
	return is_nameless(name) || (name && name->refused);
}

static const struct name *look_in_place(struct codes *codes, const struct place_asked *at, __u64 back)
{
	return background_name(codes->background,
			       &(struct background_request){.kind = at->kind,
							    .path = at->path,
							    .build_id = at->build_id,
							    .writer = at->writer,
							    .address = at->address - back},
			       codes->waiting);
}

/* The place is a dump of code that the process has made at run time. Returns false if there is none with this
 * number. */
static bool find_dump(struct codes *codes, const struct question *question, const struct spot *spot,
		      unsigned int number, struct place_asked *at)
{
	const char *path = mappings_jitdump(codes->mappings, question->pid, spot->life, number, &at->writer,
					    at->text, sizeof(at->text));

	at->path = path ? path : at->path;
	return path;
}

/* Whether the file at the path could not be verified as this one. */
static bool is_unverified(const struct name *name, const struct place_asked *at)
{
	return name && !name->nr && !name->build_id && at->build_id;
}

/* A process that enters a container has mapped what it executed before below another root, mostly our own,
 * and is in the new one when it is looked at. The build-id tells whether this is the file. */
static const struct name *look_below_ours(struct codes *codes, const struct spot *spot,
					  const struct name *name, struct place_asked *at, __u64 back)
{
	if (at->kind != NAME_OF_FILE || !is_unverified(name, at) || name->refused || name->failed ||
	    !strcmp(at->path, spot->file->path))
		return name;
	at->path = spot->file->path;
	return look_in_place(codes, at, back);
}

/* Looks up the name at this place. Code that was made at run time may be an ancestor's; the process's own map
 * comes first, because its code is newer. What is in no map may be in a dump, of which
 * a process may have its own besides an inherited one. */
static const struct name *find_name(struct codes *codes, const struct question *question,
				    const struct spot *spot, struct place_asked *at)
{
	/* A call may be the last instruction of its function, so the return address may be in
	 * the next one. */
	__u64 back = question->detail & CODE_RETURN ? 1 : 0;
	const struct name *name = look_in_place(codes, at, back);
	unsigned int generation = 0, number = 0;
	const struct name *first = &codes->made.name;

	if (at->kind != NAME_OF_JIT || !is_looked_for(name))
		return look_below_ours(codes, spot, name, at, back);
	codes->made.name = *name;
	while (is_looked_for(name) && find_place(codes, question, spot, ++generation, at))
		name = look_in_place(codes, at, back);
	while (is_looked_for(name) && find_dump(codes, question, spot, number++, at))
		name = look_in_place(codes, at, back);
	/* Of several that have no name, the first says why. */
	return is_looked_for(name) ? first : name;
}

/* Whether the file can't be touched, because its file system does not answer. */
static bool is_stuck(const struct spot *spot)
{
	return spot->file && foreign_is_stuck(spot->file->filesystem);
}

static const struct name *look_up_stuck(struct codes *codes, const struct spot *spot, __u64 **cause)
{
	const struct name *name = NULL;

	if (spot->file->build_id[0])
		name = background_known(codes->background, spot->file->build_id, spot->offset);
	*cause = &codes->account->failed;
	if (!name || !name->nr)
		codes->account->failed_why = FOREIGN_STUCK;
	return name;
}

/* Looks up the name. If there is none, sets the cause; the result may then be NULL. */
static const struct name *look_up_name(struct codes *codes, const struct question *question,
				       const struct spot *spot, __u64 **cause)
{
	struct code_account *account = codes->account;
	__u64 address = question->address - (question->detail & CODE_RETURN ? 1 : 0);
	const struct name *name;
	struct place_asked at;
	bool there = !is_stuck(spot) && find_place(codes, question, spot, 0, &at);

	*cause = there || at.kind == NAME_OF_JIT ? &account->no_symbol : &account->no_file;
	if (is_stuck(spot))
		return look_up_stuck(codes, spot, cause);
	if (!there)
		return NULL;
	/* What the notes tell takes no time, and may have gone when there is some. */
	name = at.kind == NAME_OF_KERNEL ? look_in_ksymbols(codes, address) : NULL;
	if (!name && !is_late(codes))
		name = find_name(codes, question, spot, &at);
	if (at.kind == NAME_OF_KERNEL && is_nameless(name))
		name = look_in_latest(codes, address, name);
	if (name && name->lines_why)
		account->lines_why = name->lines_why;
	if (!name)
		*cause = &account->no_time;
	else if (at.kind == NAME_OF_KERNEL && !name->nr)
		account->kernel_why = name->why;
	else if (name->refused)
		*cause = &account->refused;
	else if (name->failed) {
		*cause = &account->failed;
		account->failed_why = name->why;
	} else if (name->later) {
		*cause = &account->no_time;
	} else if (name->no_room) {
		*cause = &account->no_room;
	} else if (at.kind == NAME_OF_FILE && is_unverified(name, &at)) {
		*cause = &account->no_file;
	}
	return name;
}

/* The functions that are inlined at a place as a JSON list, innermost first, each with the line that it is
 * called from in the next one, if lines are asked for. */
static const char *inlined(struct codes *codes, const struct question *question, const struct name *name)
{
	bool lines = question->detail & CODE_LINE;
	json_t *list = json_array();
	const char *text;
	char *dumped;

	for (size_t i = 0; i + 1 < name->nr; i++) {
		const struct frame *frame = &name->frames[i];
		json_t *value = json_object();

		if (frame->symbol)
			json_object_set_new(value, "symbol", value_text(frame->symbol, NAMING_SYMBOL_MAX));
		if (frame->linkage && question->detail & CODE_LINKAGE)
			json_object_set_new(value, "linkage_name",
					    value_text(frame->linkage, NAMING_SYMBOL_MAX));
		if (frame[1].file && lines)
			json_object_set_new(value, "call_file", value_text(frame[1].file, PATH_MAX));
		if (frame[1].line && lines)
			json_object_set_new(value, "call_line", json_integer(frame[1].line));
		json_array_append_new(list, value);
	}
	dumped = json_dumps(list, JSON_COMPACT);
	text = name->nr > 1 ? keep_text(codes, dumped) : NULL;
	free(dumped);
	json_decref(list);
	return text;
}

/* Returns false if there is no symbol. */
static bool put_name(struct codes *codes, const struct question *question, const struct name *name,
		     struct code *code)
{
	if (!name || !name->nr)
		return false;
	code->symbol = keep_text(codes, name->frames[name->nr - 1].symbol);
	if (question->detail & CODE_LINKAGE)
		code->linkage = keep_text(codes, name->frames[name->nr - 1].linkage);
	/* A function whose name is empty is written as its place, without lines. */
	if (code->symbol && question->detail & CODE_LINE && name->frames[0].file) {
		code->file = keep_text(codes, name->frames[0].file);
		code->line = name->frames[0].line;
	}
	if (code->symbol && question->detail & (CODE_LINE | CODE_INLINED) && name->frames[0].file)
		code->inlined = inlined(codes, question, name);
	return code->symbol;
}

static void put_module(struct codes *codes, const struct spot *spot, struct code *code)
{
	code->module = keep_text(codes, spot->file->path);
	if (spot->file->build_id[0])
		code->build_id = keep_text(codes, spot->file->build_id);
}

/* Describes the place, so that the name can be looked up later. If only the function was asked for, and it
 * has no name but a beginning, that is the place of all of its code. */
static void put_place(const struct question *question, const struct spot *spot, const struct name *name,
		      struct code *code)
{
	__u64 back = question->detail & CODE_RETURN ? 1 : 0;

	if (spot->file && spot->file->kind != FILE_ANONYMOUS) {
		code->offset = spot->offset;
		code->has_offset = true;
		if (!name || !name->nameless)
			return;
		code->function = spot->offset - name->function_offset - back;
		code->has_function = true;
		if (!(question->detail & (CODE_PLACE | CODE_LINE)))
			code->offset = code->function;
	} else {
		code->address = question->address;
		code->has_address = true;
	}
}

static struct code_answer answer_question(struct codes *codes, const struct question *question,
					  const struct spot *spot)
{
	bool kernel = address_is_kernel(question->address);
	struct code_account *account = codes->account;
	struct code_answer answer = {
		.cause = &account->named, .changes = codes->ksymbols->changes, .since = codes->since};
	const struct name *name = NULL;
	struct code code = {0};

	codes->made.ambiguous = false;
	if (kernel)
		code.module = keep_text(codes, "[kernel]");
	if (!kernel && !spot->file)
		answer.cause = question->pid ? &account->no_mapping : &account->no_pid;
	if (!kernel && !spot->file && !(question->detail & ~(CODE_MODULE | CODE_RETURN)))
		code.module = keep_text(codes, "[unknown]");
	if (spot->file)
		put_module(codes, spot, &code);
	if (question->detail & (CODE_SYMBOL | CODE_LINE) && (kernel || spot->file)) {
		__u64 *cause;

		name = look_up_name(codes, question, spot, &cause);
		if (kernel && name && name->module)
			code.module = keep_text(codes, name->module);
		if (name && name->build_id && !code.build_id)
			code.build_id = keep_text(codes, name->build_id);
		if (!put_name(codes, question, name, &code))
			answer.cause = cause;
	}
	if (question->detail & CODE_PLACE ||
	    (question->detail & ~(CODE_MODULE | CODE_RETURN) && !code.symbol))
		put_place(question, spot, name, &code);
	if (!code.has_offset)
		code.build_id = NULL;
	answer.ambiguous = codes->made.ambiguous;
	answer.number = interned_number(&codes->codes, &code);
	return answer;
}

static struct answer_key place_of(const struct question *question, const struct spot *spot)
{
	bool in_file = spot->file && spot->file->kind != FILE_ANONYMOUS;

	return (struct answer_key){.file = spot->file,
				   .address = in_file ? spot->offset : question->address,
				   .life = in_file ? 0 : spot->life,
				   .pid = in_file ? 0 : question->pid,
				   .detail = question->detail};
}

/* Code that was made at run time may be made anew at its address. Each question about it looks at the map. */
#define MADE_ANEW_NS 5000000000ULL

/* Whether an answer is of a time when other code may have been at the address. */
static bool is_outdated(const struct codes *codes, const struct question *asked, const struct spot *spot,
			const struct code_answer *answer)
{
	if (spot->file && spot->file->kind == FILE_ANONYMOUS)
		return clock_ns(CLOCK_MONOTONIC) - answer->asked >= MADE_ANEW_NS;
	return address_is_kernel(asked->address) &&
	       (answer->changes != codes->ksymbols->changes || answer->since != codes->since);
}

/* As long as it is the same, a question has the same place. It is never 0. */
static __u64 moment_of(const struct codes *codes)
{
	return codes->changes + mappings_changes(codes->mappings);
}

/* The number of the place of a question; sets where that is mapped. The answer to a new one is to be found.
 */
static __u32 place_number(struct codes *codes, const struct question *asked, const char *comm,
			  struct spot *spot)
{
	size_t known = codes->places.nr;
	struct answer_key place;
	__u32 number;

	if (asked->pid)
		*spot = mappings_find_at(codes->mappings, asked->pid, comm && comm[0] ? comm : NULL,
					 asked->address, codes->since, codes->seen);
	place = place_of(asked, spot);
	number = interned_number(&codes->places, &place);
	if (number < known)
		return number;
	codes->answers = xroom(codes->answers, number, &codes->room, sizeof(*codes->answers));
	codes->answers[number] = (struct code_answer){0};
	if (place.file)
		mapped_file_again(place.file);
	return number;
}

static struct recent *recent_of(const struct codes *codes, const struct question *asked)
{
	__u64 hash = (asked->address ^ ((__u64)asked->pid << 32 | asked->detail)) * 0x9e3779b97f4a7c15ULL;

	return &codes->recent[hash >> 32 & (RECENT - 1)];
}

/* Whether a spot is that of the moment, too. */
static bool is_of_moment(const struct codes *codes, const struct spot *spot)
{
	return !codes->seen || (spot->since <= codes->seen && codes->seen < spot->until);
}

/* The same as place_number(), which is asked only if the question was not answered just before. */
static __u32 find_place_number(struct codes *codes, const struct question *asked, const char *comm,
			       struct spot *spot)
{
	static const char none[sizeof(((struct recent *)0)->comm)];
	struct recent *recent = recent_of(codes, asked);

	comm = comm && asked->pid ? comm : none;
	if (recent->moment == moment_of(codes) && recent->asked.address == asked->address &&
	    recent->asked.pid == asked->pid && recent->asked.detail == asked->detail &&
	    !memcmp(recent->comm, comm, sizeof(recent->comm)) && is_of_moment(codes, &recent->spot)) {
		*spot = recent->spot;
		return recent->place;
	}
	recent->place = place_number(codes, asked, comm, spot);
	recent->asked = *asked;
	memcpy(recent->comm, comm, sizeof(recent->comm));
	recent->spot = *spot;
	recent->moment = moment_of(codes);
	return recent->place;
}

/* Answers a question; the result is valid until the next one. */
static struct code_answer *find_answer(struct codes *codes, const struct question *asked, const char *comm,
				       struct spot *spot)
{
	__u32 number = find_place_number(codes, asked, comm, spot);
	struct code_answer *found = &codes->answers[number];

	/* If there was no time for this name before, the file may have been read meanwhile. */
	if (!found->cause || found->cause == &codes->account->no_time ||
	    is_outdated(codes, asked, spot, found)) {
		*found = answer_question(codes, asked, spot);
		found->asked = clock_ns(CLOCK_MONOTONIC);
	}
	spot->ambiguous |= found->ambiguous;
	return found;
}

static __u32 count_answer(struct codes *codes, const struct code_answer *found, const struct spot *spot,
			  __u64 count)
{
	*found->cause += count;
	codes->account->ambiguous += spot->ambiguous ? count : 0;
	return found->number;
}

__u32 codes_number(struct codes *codes, unsigned int detail, pid_t pid, const char *comm, __u64 address,
		   __u64 count)
{
	struct question asked = {address, address_is_kernel(address) ? 0 : pid, detail};
	struct spot spot = {0};

	return count_answer(codes, find_answer(codes, &asked, comm, &spot), &spot, count);
}

bool codes_try(struct codes *codes, unsigned int detail, pid_t pid, const char *comm, __u64 address,
	       __u64 count, __u32 *number)
{
	struct question asked = {address, address_is_kernel(address) ? 0 : pid, detail};
	struct spot spot = {0};
	const struct code_answer *found = find_answer(codes, &asked, comm, &spot);

	if (found->cause == &codes->account->no_time)
		return false;
	*number = count_answer(codes, found, &spot, count);
	return true;
}

const char *const code_untyped_words[] = {TYPE_NO_DWARF,   TYPE_UNDESCRIBED,
					  TYPE_INCOMPLETE, TYPE_NO_VARIABLE,
					  TYPE_KERNEL,	   TYPE_UNKNOWN,
					  TYPE_NO_TIME,	   TYPE_NO_CODE,
					  TYPE_NO_OPERAND, TYPE_OF_STACK,
					  TYPE_STACK,	   TYPE_NO_REGISTER,
					  TYPE_NO_POINTER, NULL};

/* --- data ------------------------------------------------------------------------------------- */

static const unsigned int of_variable = CODE_VARIABLE | CODE_VARIABLE_OFFSET;

/* Looks a datum up in the file that has code at this place. Returns the cause to be counted; NULL: the datum
 * is not in this file. */
static __u64 *look_for_datum(struct codes *codes, const struct datum *datum, const struct beside *at,
			     struct code *code)
{
	struct data_account *account = &codes->account->data;
	struct background_request wanted = {
		.kind = NAME_OF_DATUM, .address = at->offset, .distance = datum->address - at->begin};
	const struct name *name;
	char text[PATH_MAX];

	if (!at->file || at->file->kind != FILE_REGULAR || foreign_is_stuck(at->file->filesystem))
		return NULL;
	wanted.path = path_of(codes, at->file, text, sizeof(text));
	wanted.build_id = at->file->build_id[0] ? at->file->build_id : NULL;
	if (!wanted.path)
		return NULL;
	name = is_late(codes) ? NULL : background_name(codes->background, &wanted, codes->waiting);
	if (!name)
		return &account->no_time;
	if (name->outside || name->refused || name->failed ||
	    (!name->nr && !name->build_id && wanted.build_id))
		return NULL;
	code->module = keep_text(codes, at->file->path);
	code->type = keep_text(codes, name->type);
	code->field = keep_text(codes, name->field);
	code->untyped = name->untyped;
	if (!name->nr || !(datum->detail & of_variable))
		return name->nr ? &account->named : name->no_room ? &account->no_file : &account->no_symbol;
	code->symbol = keep_text(codes, name->frames[0].symbol);
	if (datum->detail & CODE_VARIABLE_OFFSET) {
		code->offset = name->frames[0].offset;
		code->has_offset = true;
	}
	return &account->named;
}

/* The mapping that the datum is in. A stack grows without notes, down to the next mapping. */
static struct spot region_of(struct codes *codes, const struct datum *datum)
{
	struct spot spot = mappings_find_at(codes->data, datum->pid, datum->comm, datum->address,
					    codes->since, codes->seen);
	struct beside beside[2];

	if (spot.file)
		return spot;
	mappings_beside(codes->data, datum->pid, datum->comm, datum->address, codes->since, MAPPINGS_FOREVER,
			beside);
	return (struct spot){
		.file = beside[1].file && !strcmp(beside[1].file->path, "[stack]") ? beside[1].file : NULL,
		.until = MAPPINGS_FOREVER};
}

static __u64 *describe_datum(struct codes *codes, const struct datum *datum, struct code *code,
			     bool *ambiguous)
{
	struct data_account *account = &codes->account->data;
	struct beside beside[2];
	struct spot region;
	__u64 *cause = NULL;

	if (!datum->address)
		return &account->no_address;
	if (address_is_kernel(datum->address)) {
		code->module = keep_text(codes, "[kernel]");
		return &account->kernel;
	}
	region = region_of(codes, datum); /* first, because it looks for processes that are not known yet */
	*ambiguous = region.ambiguous;
	mappings_find(codes->mappings, datum->pid, datum->comm, datum->address, codes->since);
	/* The code of the file that the datum is of may have gone, too. */
	mappings_beside(codes->mappings, datum->pid, datum->comm, datum->address, codes->since, region.until,
			beside);
	for (size_t i = 0; i < 2 && !cause; i++)
		cause = look_for_datum(codes, datum, &beside[i], code);
	if (cause)
		return cause;
	code->module = region.file ? keep_text(codes, region.file->path) : NULL;
	if (!region.file)
		return &account->no_mapping;
	for (size_t i = 0; i < 2; i++)
		if (beside[i].file && !strcmp(beside[i].file->path, region.file->path))
			return &account->no_file;
	return &account->no_variable;
}

/* Looks for the type by the instruction, for data that is no variable with a known one. That may also tell a
 * variable on the stack, or of a thread: returns whether it did. */
static bool look_for_type(struct codes *codes, const struct datum *datum, struct code *code)
{
	struct spot spot = mappings_find_at(codes->mappings, datum->pid, datum->comm, datum->ip, codes->since,
					    codes->seen);
	struct background_request wanted = {.kind = NAME_OF_ACCESS, .address = spot.offset};
	const struct name *name;
	char text[PATH_MAX];

	if (!spot.file || spot.file->kind != FILE_REGULAR || is_stuck(&spot) || is_late(codes))
		return false;
	wanted.path = path_of(codes, spot.file, text, sizeof(text));
	wanted.build_id = spot.file->build_id[0] ? spot.file->build_id : NULL;
	name = wanted.path ? background_name(codes->background, &wanted, codes->waiting) : NULL;
	if (!name)
		return false;
	code->type = keep_text(codes, name->type);
	code->field = keep_text(codes, name->field);
	code->untyped = name->untyped ?: code->untyped;
	if (name->type)
		code->untyped = NULL;
	if (code->symbol || !name->nr || !(datum->detail & of_variable))
		return false;
	code->symbol = keep_text(codes, name->frames[0].symbol);
	code->has_offset = datum->detail & CODE_VARIABLE_OFFSET && !name->indexed;
	code->offset = code->has_offset ? name->frames[0].offset : 0;
	return true;
}

/* Sets why there is no type, if it was not looked for in a file. */
static void explain_type(struct code *code, const struct data_account *account, const __u64 *cause)
{
	if (code->type || code->untyped)
		return;
	code->untyped = cause == &account->no_variable ? TYPE_NO_VARIABLE
			: cause == &account->kernel    ? TYPE_KERNEL
			: cause == &account->no_time   ? TYPE_NO_TIME
						       : TYPE_UNKNOWN;
}

static void count_type(struct data_account *account, const struct code *code, __u64 count)
{
	account->types_asked = true;
	account->typed += code->type ? count : 0;
	for (size_t i = 0; !code->type && code_untyped_words[i]; i++)
		if (!strcmp(code->untyped, code_untyped_words[i]))
			account->untyped[i] += count;
}

bool codes_datum(struct codes *codes, const struct datum *asked, __u64 count, bool waits, __u32 *number)
{
	struct datum datum = *asked;
	struct code code = {0};
	bool ambiguous = false;
	__u64 *cause;

	codes->account->data.asked = true;
	datum.comm = datum.comm && datum.comm[0] ? datum.comm : NULL;
	cause = describe_datum(codes, &datum, &code, &ambiguous);
	if (waits && cause == &codes->account->data.no_time)
		return false;
	if (datum.detail & CODE_TYPE) {
		if (!code.type && datum.address && !address_is_kernel(datum.address) &&
		    look_for_type(codes, &datum, &code))
			cause = &codes->account->data.named;
		explain_type(&code, &codes->account->data, cause);
		count_type(&codes->account->data, &code, count);
	}
	*cause += count;
	codes->account->data.ambiguous += ambiguous ? count : 0;
	if (!code.module)
		code.module = keep_text(codes, "[unknown]");
	/* Equal types of different files are one entry. */
	if (!(datum.detail & of_variable) && code.type)
		code.module = NULL;
	*number = interned_number(&codes->codes, &code);
	return true;
}

void codes_time(struct codes *codes, __u64 deadline, __u64 waiting)
{
	codes->deadline = deadline;
	codes->waiting = waiting;
}

void codes_since(struct codes *codes, __u64 since)
{
	codes->since = since;
	codes->changes++;
}

void codes_look_in(struct codes *codes, struct background *background)
{
	codes->background = background;
}

size_t codes_nr(const struct codes *codes)
{
	return codes->codes.nr;
}

size_t codes_nr_places(const struct codes *codes)
{
	return codes->places.nr;
}

size_t codes_text_bytes(const struct codes *codes)
{
	return codes->texts.pool.bytes + map_bytes(&codes->texts.map);
}

static void forget_places(struct codes *codes)
{
	codes->changes++;
	for (size_t i = 0; i < codes->places.nr; i++)
		mapped_file_put(((const struct answer_key *)interned_at(&codes->places, i))->file);
	interned_release(&codes->places);
	interned_init(&codes->places, sizeof(struct answer_key));
	free(codes->answers);
	codes->answers = NULL;
	codes->room = 0;
}

/* These are known by the addresses of files, which places keep. */
static void forget_paths(struct codes *codes)
{
	for (size_t i = 0; i < codes->files.nr; i++)
		free(codes->paths[i]);
	interned_clear(&codes->files);
}

void codes_forget_places(struct codes *codes)
{
	forget_places(codes);
	forget_paths(codes);
}

/* The code, with its texts among those that are kept now. */
static struct code with_texts(struct codes *codes, const struct code *code)
{
	struct code copy = *code;

	copy.module = keep_text(codes, code->module);
	copy.build_id = keep_text(codes, code->build_id);
	copy.symbol = keep_text(codes, code->symbol);
	copy.linkage = keep_text(codes, code->linkage);
	copy.file = keep_text(codes, code->file);
	copy.inlined = keep_text(codes, code->inlined);
	copy.type = keep_text(codes, code->type);
	copy.field = keep_text(codes, code->field);
	return copy;
}

void codes_keep(struct codes *codes, const bool *used, __u32 *numbers)
{
	struct interned before = codes->codes;
	struct code_texts texts = codes->texts;

	codes_forget_places(codes);
	codes->texts = (struct code_texts){0};
	interned_init(&codes->codes, sizeof(struct code));
	for (size_t i = 0; i < before.nr; i++)
		if (used[i]) {
			struct code code = with_texts(codes, interned_at(&before, i));

			numbers[i] = interned_number(&codes->codes, &code);
		}
	interned_release(&before);
	release_texts(&texts);
}

const struct code *codes_at(const struct codes *codes, __u32 number)
{
	return interned_at(&codes->codes, number);
}
