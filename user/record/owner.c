// SPDX-License-Identifier: GPL-2.0-only
#include "base/array.h"
#include "record/owner.h"

#include "host/cgroup_owner.h"
#include "record/record.h"

void owner_add(struct fields *fields, const char *path)
{
	struct cgroup_owner owner = cgroup_owner(path);
	const struct {
		const char *name, *text;
	} members[] = {
		{"container.id", owner.container_id},
		{"container.runtime", owner.runtime ?: ""},
		{"k8s.pod.uid", owner.pod_uid},
		{"systemd.unit", owner.unit},
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (members[i].text[0])
			fields_value(fields, members[i].name, value_text(members[i].text, 256));
}

void owner_put(json_t *record, const char *path)
{
	struct fields fields;

	fields_begin(&fields);
	owner_add(&fields, path);
	fields_put(&fields, record);
	fields_clear(&fields);
}
