// SPDX-License-Identifier: GPL-2.0-only
#include "output/otlp_resource.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "output/member.h"

json_t *otlp_resource(const struct stream *stream, const json_t *context)
{
	static const char *const of_nhmtap[] = {"container.id", "process.executable.name", "process.pid"};
	json_t *resource = json_copy(json_object_get(stream->start, "resource"));

	resource = resource ? resource : json_object();
	if (!json_object_get(resource, "service.name"))
		json_object_set_new(resource, "service.name", json_string("nhmtap"));
	json_object_set_new(resource, "service.instance.id", json_string(stream->run_id));
	if (context) {
		for (size_t i = 0; i < ARRAY_SIZE(of_nhmtap); i++)
			json_object_del(resource, of_nhmtap[i]);
		json_object_update(resource, (json_t *)context);
	}
	return resource;
}

/* --- what processes have published ------------------------------------------------------------ */

static void pid_text(char text[24], json_int_t pid)
{
	snprintf(text, 24, "%lld", (long long)pid);
}

/* Of so many processes that publish nothing any more, the contexts are kept for records of intervals that
 * began before. */
#define GONE_MOST 1024

static void forget_first(struct otlp_contexts *contexts)
{
	void *first = json_object_iter(contexts->gone);

	json_object_del(contexts->by_pid, json_object_iter_key(first));
	json_object_del(contexts->gone, json_object_iter_key(first));
}

bool otlp_take_context(struct otlp_contexts *contexts, const json_t *record)
{
	json_t *attributes = json_object_get(record, "attributes");
	char pid[24];

	if (strcmp(string(record, "type"), "process_context"))
		return false;
	pid_text(pid, integer(record, "pid"));
	if (!contexts->by_pid) {
		contexts->by_pid = json_object();
		contexts->gone = json_object();
	}
	if (json_is_true(json_object_get(record, "target")))
		contexts->target_pid = integer(record, "pid");
	json_object_del(contexts->gone, pid);
	if (json_object_size(attributes)) {
		json_object_set(contexts->by_pid, pid, attributes);
		return true;
	}
	json_object_set_new(contexts->gone, pid, json_integer(clock_ns(CLOCK_MONOTONIC)));
	if (json_object_size(contexts->gone) > GONE_MOST)
		forget_first(contexts);
	return true;
}

void otlp_contexts_release(struct otlp_contexts *contexts)
{
	json_decref(contexts->by_pid);
	json_decref(contexts->gone);
}

static const json_t *published_by(const struct otlp_contexts *contexts, json_int_t pid, __u64 since)
{
	const json_t *gone;
	char text[24];

	pid_text(text, pid);
	gone = json_object_get(contexts->gone, text);
	return gone && (__u64)json_integer_value(gone) <= since ? NULL
								: json_object_get(contexts->by_pid, text);
}

const json_t *otlp_context_of(const struct otlp_contexts *contexts, json_int_t pid, __u64 since)
{
	const json_t *own = published_by(contexts, pid, since);

	return own || (pid && pid != contexts->target_pid)
		       ? own
		       : published_by(contexts, contexts->target_pid, since);
}
