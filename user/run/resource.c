// SPDX-License-Identifier: GPL-2.0-only
#include "run/resource.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/baggage.h"
#include "base/visible.h"

#define ATTRIBUTES   "OTEL_RESOURCE_ATTRIBUTES"
#define SERVICE_NAME "OTEL_SERVICE_NAME"

/* Limit in bytes: all attributes are in a start record, whose length is limited. */
#define ATTRIBUTES_MOST 4096

static bool is_own(const char *name)
{
	static const char *const own[] = {"container.id",
					  "host.arch",
					  "host.emulated.model",
					  "host.emulated.version",
					  "os.type",
					  "process.executable.name",
					  "process.pid"};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strcmp(own[i], name))
			return true;
	return false;
}

/* Adds a member. Returns what is wrong; NULL: nothing. */
static const char *take_member(void *attributes, const char *name, const char *value)
{
	if (is_own(name))
		return "is what nhmtap finds out itself";
	return json_object_set_new(attributes, name, json_string(value)) ? "is not UTF-8" : NULL;
}

/* Returns a new object, which is empty if there is an error in the text. */
static json_t *read_attributes(const char *text)
{
	json_t *attributes = json_object();
	char member[104];
	const char *wrong = baggage_read(text, take_member, attributes, member, sizeof(member));

	if (!wrong)
		return attributes;
	say("nhmtap: " ATTRIBUTES " is left out as a whole: '%.100s' %s; write NAME=VALUE,NAME=VALUE, with "
	    "%%2C for a comma and %%25 for '%%'",
	    member, wrong);
	json_object_clear(attributes);
	return attributes;
}

static bool is_short(const char *name, const char *text)
{
	if (strlen(text) <= ATTRIBUTES_MOST)
		return true;
	say("nhmtap: %s is left out: it has %zu bytes, and %d fit into a record", name, strlen(text),
	    ATTRIBUTES_MOST);
	return false;
}

/* Returns a variable; an empty one counts as not set. */
static const char *variable(const char *name)
{
	const char *text = getenv(name);

	return text && *text && is_short(name, text) ? text : NULL;
}

json_t *resource_attributes(const json_t *configured)
{
	const char *text = variable(ATTRIBUTES), *service = variable(SERVICE_NAME);
	json_t *attributes = text ? read_attributes(text) : json_object();

	if (service && json_object_set_new(attributes, "service.name", json_string(service)))
		say("nhmtap: " SERVICE_NAME " is left out: it is not UTF-8");
	if (configured)
		json_object_update(attributes, (json_t *)configured);
	return attributes;
}
