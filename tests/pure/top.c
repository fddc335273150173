/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drives what nhmtap top shows, without a terminal. Lines of stdin: "take RECORD", "say TEXT", "ended TEXT",
 * "keys CHARACTERS", "key NUMBER", "tick NS" and "size COLUMNS ROWS" do what they say; "draw" prints the
 * screen, a line each, after its style and a blank, and then "--"; "look NS" does so if it has changed.
 * "live" as the argument: records are not replayed.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "annotate/annotation.h"
#include "top/model.h"

/* No code is read here. */
struct annotator *annotator_new(void)
{
	return NULL;
}

void annotator_release(struct annotator *annotator)
{
	(void)annotator;
}

json_t *annotate(struct annotator *annotator, const char *function, const json_t *record)
{
	(void)annotator;
	(void)function;
	(void)record;
	return json_array();
}

void annotation_print(struct text *text, const json_t *annotation)
{
	(void)text;
	(void)annotation;
}

static void draw(struct top_model *top)
{
	const struct screen_lines *lines = top_draw(top);

	for (size_t i = 0; i < lines->nr; i++)
		printf("%d %s\n", lines->list[i].style, lines->list[i].text);
	puts("--");
}

static void press(struct top_model *top, const char *keys)
{
	for (; *keys; keys++)
		if (!top_key(top, (unsigned char)*keys))
			puts("quit");
}

static void obey(struct top_model *top, const char *line)
{
	const char *rest = strchr(line, ' ') ? strchr(line, ' ') + 1 : "";
	int columns, rows;

	if (!strncmp(line, "take ", 5))
		top_take(top, rest, strlen(rest));
	else if (!strncmp(line, "say ", 4))
		top_say(top, rest, strlen(rest));
	else if (!strncmp(line, "ended ", 6))
		top_ended(top, rest);
	else if (!strncmp(line, "keys ", 5))
		press(top, rest);
	else if (!strncmp(line, "key ", 4) && !top_key(top, atoi(rest)))
		puts("quit");
	else if (!strncmp(line, "tick ", 5))
		top_tick(top, strtoull(rest, NULL, 10));
	else if (!strncmp(line, "look ", 5) && top_tick(top, strtoull(rest, NULL, 10)))
		draw(top);
	else if (sscanf(line, "size %d %d", &columns, &rows) == 2)
		top_resize(top, columns, rows);
	else if (!strcmp(line, "draw"))
		draw(top);
}

int main(int argc, char **argv)
{
	struct top_model *top = top_new(argc < 2 || strcmp(argv[1], "live") != 0, true);
	char *line = NULL;
	size_t room = 0;
	ssize_t size;

	setlocale(LC_CTYPE, "C.UTF-8");
	while ((size = getline(&line, &room, stdin)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		obey(top, line);
	}
	free(line);
	top_release(top);
	return 0;
}
