// SPDX-License-Identifier: GPL-2.0-only
/* CONFIG with all that it means written out: run --print-config. */
#include "run/config.h"

#include <string.h>

#include "option/command.h"

/* Sets a member that CONFIG does not have. */
static void fill_member(json_t *object, const char *member, json_t *value)
{
	if (json_object_get(object, member))
		json_decref(value);
	else
		json_object_set_new(object, member, value);
}

/* Whether the activity samples so many times a second because nothing else is asked for. */
static bool is_paced(const struct options *options)
{
	return option_of_member(options->command, "freq") && !options->period;
}

static void fill_activity(json_t *value, const struct options *options)
{
	fill_member(value, "interval_ms", json_integer((json_int_t)options->interval_ms));
	if (is_paced(options))
		fill_member(value, "freq", json_integer((json_int_t)options->usual_frequency));
	if (option_of_member(options->command, "top"))
		fill_member(value, "top", json_integer((json_int_t)options->top));
	fill_member(value, "retry", json_false());
}

/* What stdout is decides about the format there. */
static void fill_output(json_t *value, const struct place_of_output *place)
{
	fill_member(value, "path", json_string(place->path ?: "-"));
	if (place->path)
		fill_member(value, "format", json_string("json"));
	if (!place->path || strcmp(place->path, LISTEN))
		fill_member(value, "queue_bytes", json_integer((json_int_t)place->queue_bytes));
}

json_t *config_filled(const struct request *request)
{
	json_t *document = config_escaped(request), *outputs;

	for (size_t i = 0; i < request->nr_entries; i++)
		fill_activity(
			json_array_get(json_object_get(document, "activities"), request->entries[i]->place),
			&request->entries[i]->options);
	fill_member(document, "outputs", json_pack("[{}]"));
	outputs = json_object_get(document, "outputs");
	for (size_t i = 0; i < request->nr_outputs; i++)
		fill_output(json_array_get(outputs, i), &request->outputs[i]);
	return document;
}
