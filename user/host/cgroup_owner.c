// SPDX-License-Identifier: GPL-2.0-only
#include "host/cgroup_owner.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

/*
 * Forms of parts of paths: <id> is a container's id, <uid> a pod's, * any characters but '/'. If several
 * forms fit, the first one that fits at the innermost place counts. The scope of a runtime's conmon has no
 * row: it is not the container's.
 */
static const struct form {
	const char *parts;
	const char *runtime;
} forms[] = {
	/* systemd's cgroup driver: PREFIX-ID.scope, runc's docs/systemd.md */
	{"/docker-<id>.scope", "docker"},
	{"/cri-containerd-<id>.scope", "containerd"},
	{"/nerdctl-<id>.scope", "containerd"},
	{"/crio-<id>.scope", "cri-o"},
	{"/libpod-<id>.scope", "podman"},
	/* containerd without SystemdCgroup below a kubelet that has systemd's driver */
	{"/*:cri-containerd:<id>", "containerd"},
	{"/*:crio:<id>", "cri-o"},
	/* the cgroupfs driver */
	{"/docker/<id>", "docker"},
	{"/crio-<id>", "cri-o"},
	{"/libpod-<id>", "podman"},
	{"/<id>", NULL}, /* below a pod: any runtime's container is named by its id */
};

static const char *const pods[] = {
	"/*-pod<uid>.slice",		   /* kubelet with systemd's driver; the uid has '_' instead of '-' */
	"/*-pod<uid>.slice:", "/pod<uid>", /* the cgroupfs driver */
};

/* What was found by a form. */
struct found_owner {
	const char *at;
	size_t length;
};

static size_t hex_digits(const char *text)
{
	return strspn(text, "0123456789abcdef");
}

/* The length of a UUID, or of the hash of a static pod; 0 if it is neither. */
static size_t uid_length(const char *text)
{
	static const size_t groups[] = {8, 4, 4, 4, 12};
	size_t at = 0;

	if (hex_digits(text) == 32)
		return 32;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		if (hex_digits(text + at) != groups[i])
			return 0;
		at += groups[i];
		if (i < 4 && text[at] != '-' && text[at] != '_')
			return 0;
		at += i < 4;
	}
	return at;
}

static size_t id_length(const char *text)
{
	return hex_digits(text) == CONTAINER_ID_LENGTH ? CONTAINER_ID_LENGTH : 0;
}

/* Whether the form matches the beginning of `path`, and ends at the end of a part or at a ':'. */
static bool fits_form(const char *form, const char *path, struct found_owner *found)
{
	static const struct {
		const char *name;
		size_t (*length)(const char *);
	} ids[] = {{"<id>", id_length}, {"<uid>", uid_length}};

	for (; *form; form++) {
		if (*form == '*') {
			for (size_t i = 0; path[i] && path[i] != '/'; i++)
				if (fits_form(form + 1, path + i, found))
					return true;
			return false;
		}
		if (*form != '<') {
			if (*form != *path++)
				return false;
			continue;
		}
		for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
			if (!strncmp(form, ids[i].name, strlen(ids[i].name)))
				*found = (struct found_owner){path, ids[i].length(path)};
		if (!found->length)
			return false;
		path += found->length;
		form = strchr(form, '>');
	}
	return !*path || *path == '/' || form[-1] == ':';
}

/* The innermost place where the form matches; `at` is NULL if there is none. */
static struct found_owner innermost(const char *form, const char *path)
{
	struct found_owner last = {0};

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		struct found_owner found = {0};

		if (fits_form(form, at, &found))
			last = found;
	}
	return last;
}

static bool ends_with(const char *text, size_t length, const char *suffix)
{
	size_t of_suffix = strlen(suffix);

	return length > of_suffix && !strncmp(text + length - of_suffix, suffix, of_suffix);
}

static void find_unit(struct cgroup_owner *owner, const char *path)
{
	static const char *const types[] = {".service", ".scope", ".socket", ".mount", ".swap"};

	for (const char *part = path + strspn(path, "/"); *part; part += strspn(part, "/")) {
		size_t length = strcspn(part, "/");

		if (!ends_with(part, length, ".slice")) {
			for (size_t i = 0; i < ARRAY_SIZE(types); i++)
				if (ends_with(part, length, types[i]))
					/* systemd prefixes a name with '_' if it would otherwise have a
					 * meaning in cgroupfs. */
					snprintf(owner->unit, sizeof(owner->unit), "%.*s",
						 (int)(length - (*part == '_')), part + (*part == '_'));
			return;
		}
		part += length;
	}
}

struct cgroup_owner cgroup_owner(const char *path)
{
	struct cgroup_owner owner = {0};
	struct found_owner id = {0}, uid = {0};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct found_owner found = innermost(forms[i].parts, path);

		if (found.at > id.at) {
			id = found;
			owner.runtime = forms[i].runtime;
		}
	}
	if (id.at)
		snprintf(owner.container_id, sizeof(owner.container_id), "%.*s", (int)id.length, id.at);
	for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
		struct found_owner found = innermost(pods[i], path);

		uid = found.at > uid.at ? found : uid;
	}
	for (size_t i = 0; i < uid.length; i++)
		owner.pod_uid[i] = uid.at[i] == '_' ? '-' : uid.at[i];
	find_unit(&owner, path);
	return owner;
}

bool cgroup_is_owned(const char *path, const char *id)
{
	struct cgroup_owner owner = cgroup_owner(path);

	return !strncmp(owner.container_id, id, strlen(id)) || !strcmp(owner.pod_uid, id);
}
