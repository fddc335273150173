// SPDX-License-Identifier: GPL-2.0-only
#include "output/otlp_resource.h"

json_t *otlp_resource(const struct stream *stream)
{
	json_t *resource = json_copy(json_object_get(stream->start, "resource"));

	resource = resource ? resource : json_object();
	if (!json_object_get(resource, "service.name"))
		json_object_set_new(resource, "service.name", json_string("nhmtap"));
	json_object_set_new(resource, "service.instance.id", json_string(stream->run_id));
	return resource;
}
