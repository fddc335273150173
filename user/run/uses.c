// SPDX-License-Identifier: GPL-2.0-only
#include "run/uses.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/list.h"
#include "option/option.h"
#include "output/address.h"
#include "output/documents.h"

/* --- what is needed --------------------------------------------------------------------------- */

struct need {
	/* Whether an output has it. */
	bool (*is_met)(const struct place_of_output *place);
	/* Whether a format has it; NULL: `why` tells what has it. */
	bool (*is_of)(const struct format *format);
	const char *why, *next;
	const char *schema; /* that such an output fits; NULL: the one for formats */
	bool every_url;	    /* of several outputs, each that is a URL has to have it */
};

static bool is_url(const struct place_of_output *place)
{
	return address_is_url(place->path);
}

static bool is_tls(const struct place_of_output *place)
{
	return address_is_url(place->path) && !strncmp(place->path, "https:", 6);
}

static bool is_verified(const struct place_of_output *place)
{
	return !place->access.unverified;
}

static bool has_cert(const struct place_of_output *place)
{
	return place->access.files[ACCESS_CERT];
}

static bool has_key(const struct place_of_output *place)
{
	return place->access.files[ACCESS_KEY];
}

static bool is_page(const struct place_of_output *place)
{
	return place->path && !strcmp(place->path, LISTEN);
}

static bool has_queue(const struct place_of_output *place)
{
	return !is_page(place);
}

static const struct format *format_of(const struct place_of_output *place)
{
	struct refusal ignored = {0};

	return place->format ? format_find(place->format, NULL, &ignored) : NULL;
}

static bool grows(const struct place_of_output *place)
{
	const struct format *format = format_of(place);

	return place->path && !is_page(place) && !address_is(place->path) && !address_is_url(place->path) &&
	       !documents_is_pattern(place->path) && !(format && format->replaces);
}

static bool is_of_series(const struct format *format)
{
	return format->series;
}

static bool has_series(const struct place_of_output *place)
{
	const struct format *format = format_of(place);

	return format && format->series;
}

static bool is_of_temporality(const struct format *format)
{
	return format->temporality;
}

static bool has_temporality(const struct place_of_output *place)
{
	const struct format *format = format_of(place);

	return format && format->temporality;
}

#define PATH_LIKE(pattern)                                                                                   \
	"{\"properties\":{\"path\":{\"pattern\":\"" pattern "|[$][{]\"}},\"required\":[\"path\"]}"
#define TLS_LIKE(schema) "{\"properties\":{\"tls\":" schema "}}"

static const struct need of_url = {
	.is_met = is_url,
	.why = "only an output at http:// or https:// has a use for it",
	.next = "leave it out, or give such an output",
	.schema = PATH_LIKE("^https?://"),
};

static const struct need of_tls = {
	.is_met = is_tls,
	.why = "only an output at https:// has a use for it",
	.next = "leave it out, or use https:// if the server does",
	.schema = PATH_LIKE("^https://"),
	.every_url = true,
};

static const struct need of_verified = {
	.is_met = is_verified,
	.why = "no certificate is verified if verifying is skipped",
	.next = "leave out one of the two",
	.schema = TLS_LIKE("{\"not\":{\"properties\":{\"insecure_skip_verify\":{\"const\":true}},"
			   "\"required\":[\"insecure_skip_verify\"]}}"),
};

static const struct need of_cert = {
	.is_met = has_cert,
	.why = "the certificate that it belongs to is missing",
	.next = "name both, or neither",
	.schema = TLS_LIKE("{\"required\":[\"cert_file\"]}"),
};

static const struct need of_key = {
	.is_met = has_key,
	.why = "its private key is missing",
	.next = "name both, or neither",
	.schema = TLS_LIKE("{\"required\":[\"key_file\"]}"),
};

static const struct need of_queue = {
	.is_met = has_queue,
	.why = "nothing waits for who reads the page of " LISTEN,
	.next = "leave it out",
	.schema = "{\"not\":{\"properties\":{\"path\":{\"const\":\"" LISTEN "\"}},\"required\":[\"path\"]}}",
};

static const struct need of_growing = {
	.is_met = grows,
	.why = "only an output that is a file with all intervals has a use for it",
	.next = "leave it out, or give such a file with -o",
};

static const struct need of_series = {
	.is_met = has_series,
	.is_of = is_of_series,
	.next = "leave it out, or choose such a format",
};

static const struct need of_temporality = {
	.is_met = has_temporality,
	.is_of = is_of_temporality,
	.next = "leave it out, or choose such a format",
};

static const struct {
	const char *within; /* the object in an output of CONFIG that has it; NULL: the output itself */
	const char *member; /* NULL: CONFIG has none */
	const char *option; /* NULL: the command line has none */
	const struct need *need;
} uses[] = {
	{NULL, "temporality", "temporality", &of_temporality},
	{NULL, "series", "series", &of_series},
	{NULL, "headers_file", "headers-file", &of_url},
	{NULL, "tls", NULL, &of_tls},
	{NULL, NULL, "tls-ca-file", &of_tls},
	{NULL, NULL, "tls-cert-file", &of_tls},
	{NULL, NULL, "tls-key-file", &of_tls},
	{NULL, NULL, "tls-insecure-skip-verify", &of_tls},
	{"tls", "ca_file", "tls-ca-file", &of_verified},
	{"tls", "cert_file", "tls-cert-file", &of_key},
	{"tls", "key_file", "tls-key-file", &of_cert},
	{NULL, "queue_bytes", "queue", &of_queue},
	{NULL, NULL, "append", &of_growing},
};

/* The names of the formats that a need is of, as in "openmetrics, otlp". */
static void formats_of(const struct need *need, char *names, size_t size)
{
	const struct format *format;

	names[0] = '\0';
	for (size_t i = 0; (format = format_at(i)); i++)
		if (need->is_of(format))
			list_append(names, size, format->name);
}

static int refuse_need(struct refusal *refusal, const struct need *need)
{
	char names[200];

	if (need->is_of) {
		formats_of(need, names, sizeof(names));
		because(refusal, "only these formats have a use for it: %s", names);
	} else {
		because(refusal, "%s", need->why);
	}
	return instead(refusal, "%s", need->next);
}

/* --- CONFIG ----------------------------------------------------------------------------------- */

int uses_check_members(const json_t *output, const struct place_of_output *place, const char *pointer,
		       struct refusal *refusal)
{
	for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
		const char *within = uses[i].within;
		const json_t *object = within ? json_object_get(output, within) : output;

		if (!uses[i].member || !json_object_get(object, uses[i].member) ||
		    uses[i].need->is_met(place))
			continue;
		refuse(refusal, STATUS_USAGE, "CONFIG, %s/%s%s%s", pointer, within ? within : "",
		       within ? "/" : "", uses[i].member);
		return refuse_need(refusal, uses[i].need);
	}
	return 0;
}

/* --- the command line ------------------------------------------------------------------------- */

static const struct option_row *row_of(const char *name)
{
	const struct option_row *row = stream_rows;

	while (row->name && strcmp(row->name, name))
		row++;
	return row;
}

/* Begins the refusal of an option, as it was given. Returns whether it was. */
static bool refuse_given(struct refusal *refusal, const struct option_row *row, const struct options *options)
{
	const void *value = (const char *)options + row->offset;
	const char *text = NULL;
	char number[24];

	if (row->kind == OPTION_FLAG && !*(const bool *)value)
		return false;
	if (row->kind == OPTION_NUMBER) {
		snprintf(number, sizeof(number), "%llu", *(const __u64 *)value);
		text = *(const __u64 *)value ? number : NULL;
	} else if (row->kind != OPTION_FLAG) {
		text = *(const char *const *)value;
	}
	if (row->kind != OPTION_FLAG && !text)
		return false;
	if (text)
		refuse(refusal, STATUS_USAGE, "option --%s '%.300s'", row->name, text);
	else
		refuse(refusal, STATUS_USAGE, "option --%s", row->name);
	return true;
}

static bool is_met(const struct need *need, const struct place_of_output *places, size_t nr)
{
	bool any = false;

	for (size_t i = 0; i < nr; i++) {
		bool met = need->is_met(&places[i]);

		if (!met && need->every_url && address_is_url(places[i].path))
			return false;
		any = any || met;
	}
	return any;
}

int uses_check_options(const struct options *options, const struct place_of_output *places, size_t nr,
		       struct refusal *refusal)
{
	for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
		if (!uses[i].option || is_met(uses[i].need, places, nr) ||
		    !refuse_given(refusal, row_of(uses[i].option), options))
			continue;
		return refuse_need(refusal, uses[i].need);
	}
	return 0;
}

/* --- the schema ------------------------------------------------------------------------------- */

static json_t *schema_of_formats(const struct need *need)
{
	json_t *names = json_array();
	const struct format *format;

	for (size_t i = 0; (format = format_at(i)); i++)
		if (need->is_of(format))
			json_array_append_new(names, json_string(format->name));
	return json_pack("{s:{s:{s:[{s:o}, {s:s}]}}, s:[s]}", "properties", "format", "anyOf", "enum", names,
			 "pattern", "[$][{]", "required", "format");
}

/* The schema of an object that has the member, within another one or by itself. */
static json_t *schema_with(const char *within, const char *member)
{
	json_t *schema = json_pack("{s:[s]}", "required", member);

	return within ? json_pack("{s:{s:o}, s:[s]}", "properties", within, schema, "required", within)
		      : schema;
}

json_t *uses_schema(void)
{
	json_t *all = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
		const struct need *need = uses[i].need;

		if (!uses[i].member)
			continue;
		json_array_append_new(
			all,
			json_pack("{s:o, s:o}", "if", schema_with(uses[i].within, uses[i].member), "then",
				  need->is_of ? schema_of_formats(need) : json_loads(need->schema, 0, NULL)));
	}
	return all;
}
