/* SPDX-License-Identifier: GPL-2.0-only */
/* The owner of a cgroup, by its path: a container, a pod, or a unit of systemd. */
#pragma once

#include <stdbool.h>

#define CONTAINER_ID_LENGTH 64 /* hexadecimal digits */

struct cgroup_owner {
	char container_id[CONTAINER_ID_LENGTH + 1]; /* "": it does not belong to a container */
	const char *runtime;			    /* "docker"; NULL: the path does not say */
	char pod_uid[37];			    /* "": it does not belong to a pod */
	char unit[256];				    /* "ssh.service"; "": none */
};

/*
 * Finds the owner by a path ("/system.slice/docker-….scope/init"). If containers are nested, it is the
 * innermost one. The unit is the one to which systemd assigns the path, by cg_path_get_unit() in its
 * src/basic/cgroup-util.c: the first below the slices.
 */
struct cgroup_owner cgroup_owner(const char *path);

/* Whether the path is that of a container whose id begins with `id`, or of a pod whose uid it is. */
bool cgroup_is_owned(const char *path, const char *id);
