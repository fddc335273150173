// SPDX-License-Identifier: GPL-2.0-only
#include "run/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/alternatives.h"
#include "base/memory.h"
#include "option/option.h"
#include "output/address.h"

#define PREFERENCE "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"

bool request_cumulative(const char *asked)
{
	const char *preferred = getenv(PREFERENCE);

	if (asked)
		return !strcmp(asked, CUMULATIVE);
	return preferred && !strcasecmp(preferred, CUMULATIVE);
}

struct push_access request_access(const struct options *options)
{
	return (struct push_access){
		{options->tls_files[0], options->tls_files[1], options->tls_files[2], options->headers_file},
		options->tls_unverified};
}

/* A file may have any name, but one that begins with a misspelt format would surprise. */
static int check_format(const char *text, size_t length, struct refusal *refusal)
{
	struct alternatives alternatives;
	const struct format *format;

	alternatives_begin(&alternatives, text, length);
	for (size_t i = 0; (format = format_at(i)); i++)
		alternatives_offer(&alternatives, format->name);
	if (!alternatives_near(&alternatives))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --output '%.200s'", text);
	because(refusal, "there is no format '%.*s'", (int)length, text);
	return alternatives_end(&alternatives, refusal, "a file of this name is ./%.200s", text);
}

int request_place(struct place_of_output *place, const struct options *options, const char *text,
		  struct refusal *refusal)
{
	size_t length = strcspn(text, "=");
	const struct format *format = NULL;

	for (size_t i = 0; text[length] && (format = format_at(i)); i++)
		if (strlen(format->name) == length && !strncmp(format->name, text, length))
			break;
	if (text[length] && !format && check_format(text, length, refusal))
		return -1;
	*place = (struct place_of_output){
		.path = format ? text + length + 1 : text,
		.format = format ? format->name : options->format,
		.append = options->append,
		.series = options->series,
		.cumulative = request_cumulative(options->temporality),
		.queue_bytes = options->queue_bytes ? options->queue_bytes : QUEUE_BYTES,
	};
	if (address_is_url(place->path))
		place->access = request_access(options);
	if (!strcmp(place->path, "-"))
		place->path = NULL;
	return 0;
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

int request_pass(struct request *request, struct refusal *refusal)
{
	if (!request->check)
		return -1;
	for (size_t i = 0; i < request->nr_found; i++)
		if (!strcmp(request->found[i].asked, refusal->asked)) {
			*refusal = (struct refusal){0};
			return 0;
		}
	*xappend(request->found, request->nr_found) = *refusal;
	*refusal = (struct refusal){0};
	return 0;
}

void request_release(struct request *request)
{
	free(request->found);
	for (size_t i = 0; i < request->nr_entries; i++)
		asked_release(request->entries[i]);
	free(request->entries);
	free(request->outputs);
	json_decref(request->document);
	*request = (struct request){0};
}
