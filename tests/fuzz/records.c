// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the readers of stored streams of records: symbolize, which writes them again, and
 * flamegraph. No crash, no leak, and every line that is written is one record of at most RECORD_MAX
 * bytes, unless it cannot be cut or was too long before.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <jansson.h>

#include "naming/naming.h"
#include "output/flamegraph.h"
#include "output/output.h"
#include "output/restream.h"
#include "record/stored_code.h"
#include "record/stored_lines.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static struct naming *naming;
static struct stored_account account;

static bool add_names(void *of, const json_t *record, json_t *list)
{
	bool added = false;

	for (size_t i = 0; i < json_array_size(list); i++)
		added |= stored_name(record, json_array_get(list, i), naming, true, &account);
	return added;
}

const struct name *__wrap_naming_file(struct naming *of, const char *path, const char *build_id,
				      __u64 offset);

/* The lowest two bits of the offset are the number of functions, each inlined in the next. The
 * length of the path decides how long the name of the second one is. */
const struct name *__wrap_naming_file(struct naming *of, const char *path, const char *build_id, __u64 offset)
{
	static char longest[NAMING_SYMBOL_MAX + 1];
	static const struct frame frames[] = {
		{.symbol = "inner", .file = "cats.c", .line = 7},
		{.symbol = longest, .file = "cats.h"},
		{.symbol = "outer", .offset = 16, .file = "cats.c", .line = 40},
	};
	static struct name name = {.build_id = "6b09", .frames = frames};

	memset(longest, 'x', sizeof(longest) - 1);
	longest[strlen(path) * 64 % NAMING_SYMBOL_MAX] = '\0';
	name.nr = offset % 4;
	name.why = name.nr ? NULL : "there is no such file";
	return &name;
}

#define SEQ_GROWS 40	    /* the digits by which `seq` and `records` can grow in a line that is passed on */
static size_t longest_line; /* of the input */

static void check_line(const char *line, size_t size)
{
	json_t *record = json_loadb(line, size, 0, NULL);
	const char *list = record ? stored_list(record) : NULL;

	if (!record || memchr(line, '\n', size) != line + size - 1)
		abort();
	if (size > RECORD_MAX && size > longest_line + SEQ_GROWS &&
	    json_array_size(json_object_get(record, list ? list : "")) > 1)
		abort();
	json_decref(record);
}

int __wrap_sink_put(struct sink *sink, const char *line, size_t size);
int __real_sink_put(struct sink *sink, const char *line, size_t size);

int __wrap_sink_put(struct sink *sink, const char *line, size_t size)
{
	check_line(line, size);
	return __real_sink_put(sink, line, size);
}

static bool is_record(const json_t *record)
{
	return json_is_string(json_object_get(record, "type")) &&
	       json_is_string(json_object_get(record, "run_id")) &&
	       json_is_integer(json_object_get(record, "seq"));
}

/* The kernel has a short and a long symbol, so that records grow and are split again. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char path[64];
	const struct naming_settings settings = {.lines = true,
						 .root = "/proc/self/fdinfo",
						 .kallsyms = path,
						 .modules = "/dev/null",
						 .debug_dir = "/nonexistent"};
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	dprintf(fd, "ffffffff81000000 T _stext\nffffffff81000040 t %0*d\nffffffff82000000 T _etext\n",
		NAMING_SYMBOL_MAX, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	naming = naming_open(&settings);
	return 0;
}

static void draw(struct flamegraph *flamegraph)
{
	struct text page = {0};

	if (flamegraph_events(flamegraph))
		flamegraph_page(flamegraph, "fuzz", &page);
	free(page.bytes);
	flamegraph_release(flamegraph);
}

/* An empty line begins the second stream of the reversed graph. */
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct sink sink = {.fd = open("/dev/null", O_WRONLY | O_CLOEXEC)};
	struct restream restream = {.sink = &sink, .change = add_names, .list_of = stored_list};
	struct flamegraph *flamegraph = flamegraph_new(), *reversed = flamegraph_new();
	int fd = memfd_create("records", MFD_CLOEXEC);
	struct stored_lines lines;
	const char *line;
	ssize_t length;
	bool whole;

	if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	flamegraph_reverse(reversed);
	flamegraph_part(reversed, 0.5, 2);
	stored_lines_open(&lines, fd);
	longest_line = 0;
	while ((length = stored_lines_next(&lines, &line, &whole)) > 0) {
		json_t *record = whole ? json_loadb(line, length, 0, NULL) : NULL;

		longest_line = (size_t)length > longest_line ? (size_t)length : longest_line;
		flamegraph_take(flamegraph, record);
		flamegraph_take(reversed, record);
		if (length == 1)
			flamegraph_second(reversed);
		if (record && is_record(record) && line[length - 1] == '\n')
			restream_record(&restream, record, line, length);
		else
			json_decref(record);
	}
	stored_lines_close(&lines);
	restream_end(&restream);
	draw(flamegraph);
	draw(reversed);
	sink_close(&sink);
	close(fd);
	return 0;
}
