// SPDX-License-Identifier: GPL-2.0-only
#include "run/run.h"

#include <stdlib.h>
#include <string.h>

#include "option/option.h"

void request_place(struct place_of_output *place, const struct options *options, const char *text)
{
	size_t length = strcspn(text, "=");
	const struct format *format = NULL;

	for (size_t i = 0; text[length] && (format = format_at(i)); i++)
		if (strlen(format->name) == length && !strncmp(format->name, text, length))
			break;
	*place = (struct place_of_output){
		.path = format ? text + length + 1 : text,
		.format = format ? format->name : options->format,
		.append = options->append,
		.series = options->series,
		.queue_bytes = options->queue_bytes ? options->queue_bytes : QUEUE_BYTES,
	};
	if (!strcmp(place->path, "-"))
		place->path = NULL;
}

void asked_release(struct asked *asked)
{
	if (!asked)
		return;
	options_release(&asked->options);
	json_decref(asked->value);
	free(asked->name);
	free(asked);
}

void request_release(struct request *request)
{
	for (size_t i = 0; i < request->nr_entries; i++)
		asked_release(request->entries[i]);
	free(request->entries);
	free(request->outputs);
	json_decref(request->document);
	*request = (struct request){0};
}
