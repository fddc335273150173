// SPDX-License-Identifier: GPL-2.0-only
#include "naming/named_source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "naming/demangle.h"
#include "naming/dwarf_image.h"

/* --- reading ---------------------------------------------------------------------------------- */

const char *source_why(int error)
{
	switch (error) {
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

const char *source_open(struct image *image, const struct place *place, bool *refused)
{
	int fd;

	*refused = false;
	if (!strcmp(place->path, "[vdso]"))
		return image_from_vdso(image);
	fd = place_open(place);
	if (fd >= 0)
		return image_from_file(image, fd);
	*refused = guarded_refused(errno);
	return source_why(errno);
}

static void load_symbols(struct source *source, const struct image *image, const struct image *debug,
			 size_t most)
{
	struct symbols *symbols = &source->symbols;
	struct image mini;

	if (!image_add_symbols(image, SHT_SYMTAB, symbols, most) &&
	    !(debug && image_add_symbols(debug, SHT_SYMTAB, symbols, most))) {
		image_add_symbols(image, SHT_DYNSYM, symbols, most);
		if (image_mini(image, &mini, most)) {
			image_add_symbols(&mini, SHT_SYMTAB, symbols, most);
			image_close(&mini);
		}
	}
	image_add_plt(image, symbols, most);
	symbols_finish(symbols, image_end_of_code, image);
}

/* Takes over the image that has the DWARF, and marks it so (elf: NULL). */
static struct lines *load_lines(struct image *image, const struct place *place, const char *debug_dir,
				size_t most)
{
	char build_id[2 * BUILD_ID_MAX + 1];
	const char *name = dwarf_alternate(image, build_id);
	struct image alternate;
	bool shares = name && alternate_open(&alternate, image, name, build_id, place, debug_dir);
	struct lines *lines = lines_open(image, shares ? &alternate : NULL, most);

	*image = (struct image){.fd = -1};
	return lines;
}

/* A source that alone is beyond the limit would be forgotten, and read again, at each call. */
static size_t left_for_lines(const struct source *source, const struct naming_settings *settings)
{
	size_t taken = symbols_bytes(&source->symbols);

	return taken < settings->memory ? (settings->memory - taken) / 4 * 3 : 0;
}

void source_load(struct source *source, struct image *image, const struct place *place,
		 const struct naming_settings *settings)
{
	struct image debug = {.fd = -1};
	GElf_Shdr header;
	bool own_lines = dwarf_in(image), own_symbols = image_section(image, ".symtab", &header);
	bool other = (!own_symbols || (settings->lines && !own_lines)) &&
		     debug_file_open(&debug, image, place, settings->debug_dir);

	source->segments = image_segments(image, &source->nr_segments);
	load_symbols(source, image, other ? &debug : NULL, settings->memory / 4);
	if (settings->lines && own_lines)
		source->lines =
			load_lines(image, place, settings->debug_dir, left_for_lines(source, settings));
	else if (settings->lines && other && dwarf_in(&debug))
		source->lines =
			load_lines(&debug, place, settings->debug_dir, left_for_lines(source, settings));
	image_close(image);
	image_close(&debug);
}

void source_forget_names(struct source *source)
{
	map_release(&source->names);
	pool_release(&source->pool);
}

void source_empty(struct source *source)
{
	free(source->segments);
	source->segments = NULL;
	source->nr_segments = 0;
	symbols_release(&source->symbols);
	lines_close(source->lines);
	source->lines = NULL;
	source_forget_names(source);
	map_release(&source->shown);
	pool_release(&source->texts);
}

size_t source_bytes(const struct source *source)
{
	return sizeof(*source) + source->alias_bytes + symbols_bytes(&source->symbols) + source->pool.bytes +
	       source->texts.bytes + map_bytes(&source->names) + map_bytes(&source->shown) +
	       source->nr_segments * sizeof(*source->segments) +
	       (source->lines ? lines_bytes(source->lines) : 0);
}

/* --- names ------------------------------------------------------------------------------------ */

/* A symbol's text as it is shown; made once. */
static const char *shown(struct source *source, const char *symbol)
{
	__u64 key = (uintptr_t)symbol;
	char text[NAMING_SYMBOL_MAX + 1], *known;
	size_t length;

	if (!symbol)
		return NULL;
	known = map_find(&source->shown, key);
	if (known)
		return known;
	length = demangle(symbol, text, sizeof(text));
	if (!strcmp(symbol, text)) /* the symbol's own text lives as long */
		return symbol;
	known = pool_text(&source->texts, text, length);
	map_put(&source->shown, key, known);
	return known;
}

/* The path of a source file; made once. */
static const char *file_shown(struct source *source, const struct source_place *place)
{
	__u64 key = (uintptr_t)place->file;
	char path[2 * PATH_MAX], *known;
	int length;

	if (!place->folder)
		return place->file;
	known = map_find(&source->shown, key);
	if (known)
		return known;
	length = snprintf(path, sizeof(path), "%s/%s", place->folder, place->file);
	if (length >= (int)sizeof(path))
		return place->file;
	known = pool_text(&source->texts, path, length);
	map_put(&source->shown, key, known);
	return known;
}

static void set_frames(struct source *source, struct frame *frames, const struct source_place *places,
		       size_t nr, const struct symbol *symbol, __u64 address)
{
	struct frame *last = &frames[nr - 1];

	for (size_t i = 0; i < nr; i++)
		frames[i] =
			(struct frame){shown(source, places[i].function), 0, file_shown(source, &places[i]),
				       places[i].file ? places[i].line : 0};
	/* The symbol table's name is what other tools show: "f.cold", "f.part.0". */
	if (symbol) {
		last->symbol = shown(source, symbol_name(&source->symbols, symbol));
		last->offset = address - symbol->address;
	} else if (places[nr - 1].entry && places[nr - 1].entry <= address) {
		last->offset = address - places[nr - 1].entry;
	}
}

#define FRAMES_MAX 32 /* of a name */

struct name *source_name_at(struct source *source, __u64 address)
{
	const struct symbol *symbol = symbols_find(&source->symbols, address);
	struct source_place places[FRAMES_MAX] = {0};
	size_t nr = source->lines ? lines_find(source->lines, address, places, FRAMES_MAX) : 0;
	struct name *name = pool_take(&source->pool, sizeof(*name));
	struct frame *frames;

	name->build_id = source->build_id[0] ? source->build_id : NULL;
	if (nr == 1 && !places[0].function && !places[0].file)
		nr = 0;
	if (!nr && !symbol) {
		name->why = "no symbol is there";
		return name;
	}
	name->nr = nr ? nr : 1;
	frames = pool_take(&source->pool, name->nr * sizeof(*frames));
	set_frames(source, frames, places, name->nr, symbol, address);
	name->frames = frames;
	return name;
}
