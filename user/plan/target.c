// SPDX-License-Identifier: GPL-2.0-only
#include "plan/target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>

#include "base/alternatives.h"
#include "base/array.h"
#include "base/list.h"
#include "base/memory.h"
#include "host/cgroup_owner.h"
#include "host/cgroup_pattern.h"
#include "host/files.h"

/* --- processes and threads -------------------------------------------------------------------- */

static bool has_id(const pid_t *ids, size_t nr, pid_t id)
{
	while (nr && ids[nr - 1] != id)
		nr--;
	return nr;
}

/* `what` is "process", `option` "--pid". An id that is named twice is one target. */
static int plan_ids(pid_t **ids, size_t *nr, const char *what, const char *option, const char *text,
		    struct refusal *refusal)
{
	for (const char *at = text;; at++) {
		char *end;
		long id = strtol(at, &end, 10);

		if (end == at || id <= 0 || id > INT_MAX || (*end && *end != ',')) {
			refuse(refusal, STATUS_USAGE, "option %s '%s'", option, text);
			because(refusal, "'%.*s' is no %s id", (int)strcspn(at, ","), at, what);
			return instead(refusal, "it takes %s ids with ',' between them", what);
		}
		if (!has_id(*ids, *nr, id)) {
			*xappend(*ids, *nr) = id;
		}
		at = end;
		if (!*at)
			return 0;
	}
}

/* --- CPUs ------------------------------------------------------------------------------------- */

static int plan_cpus(struct target *target, const char *text, const struct host *host,
		     struct refusal *refusal)
{
	char online[256];
	int missing;

	target->cpus_given = true;
	if (!text) {
		target->all_cpus = true;
		target->cpus = host->online;
		return 0;
	}
	if (cpus_parse(text, &target->cpus)) {
		refuse(refusal, STATUS_USAGE, "option --cpu '%s'", text);
		because(refusal, "it is no list of CPUs");
		return instead(refusal, "write one like 0-3,8");
	}
	missing = cpus_missing(&target->cpus, &host->online);
	if (missing < 0)
		return 0;
	refuse(refusal, STATUS_REFUSED, "option --cpu '%s'", text);
	refusal->error = ENODEV;
	because(refusal, "CPU %d %s", missing,
		cpus_has(&host->possible, missing) ? "is offline" : "does not exist on this machine");
	return instead(refusal, "online are %s", cpus_print(&host->online, online, sizeof(online)));
}

/* --- cgroups ---------------------------------------------------------------------------------- */

static int refuse_cgroup(struct refusal *refusal, const char *name, int error)
{
	refuse(refusal, STATUS_REFUSED, "cgroup '%s'", name);
	refusal->error = error;
	return -1;
}

/* Events of cgroups work in one hierarchy only: the unified one, unless version 1 has the controller
 * perf_event. */
static int check_hierarchy(const struct host *host, const char *name, struct refusal *refusal)
{
	if (host->cgroup_v1[0]) {
		refuse_cgroup(refusal, name, EOPNOTSUPP);
		because(refusal,
			"the perf_event controller is mounted as version 1, at %s, and cgroups of version 2 "
			"then have no events",
			host->cgroup_v1);
		return instead(refusal, "umount %s, or boot with cgroup_no_v1=perf_event", host->cgroup_v1);
	}
	if (host->cgroup_mount[0])
		return 0;
	refuse_cgroup(refusal, name, EOPNOTSUPP);
	because(refusal, "no cgroup hierarchy of version 2 is mounted here");
	return instead(refusal, "mount -t cgroup2 none /sys/fs/cgroup; in a container, bind the host's");
}

static const char *below_mount(const struct host *host, const char *name)
{
	size_t length = strlen(host->cgroup_mount);

	return !strncmp(name, host->cgroup_mount, length) && (!name[length] || name[length] == '/')
		       ? name + length
		       : name;
}

/* Appends the parts of a name to a path, so that each cgroup has one spelling: without "//", "." and "..".
 * Nothing leads out of the first `least` bytes. A cgroup file system has no symbolic links, so this needs no
 * look at it. */
static void append_parts(char *path, size_t least, const char *name)
{
	size_t used = least;

	while (*(name += strspn(name, "/"))) {
		size_t length = strcspn(name, "/");

		if (length == 2 && !strncmp(name, "..", 2)) {
			while (used > least && path[--used] != '/')
				;
		} else if (length != 1 || *name != '.') {
			path[used++] = '/';
			memcpy(path + used, name, length);
			used += length;
		}
		name += length;
	}
	path[used] = '\0';
}

/* Returns the path of a cgroup's folder. The name is that path, or the part of it below the mount, as in
 * /proc/PID/cgroup. The caller frees it. */
static char *cgroup_folder(const struct host *host, const char *name)
{
	size_t mount = strlen(host->cgroup_mount);
	char *path = xmalloc(mount + strlen(name) + 2);

	memcpy(path, host->cgroup_mount, mount);
	append_parts(path, mount, below_mount(host, name));
	return path;
}

/* The same for a name that leads to the folder in another way: by a symbolic link, or by another mount of the
 * hierarchy. NULL: it leads to no cgroup, or to one that is not below the mount. */
static char *cgroup_folder_elsewhere(const struct host *host, const char *name)
{
	struct statfs system;
	struct stat folder;
	const char *below;

	if (statfs(name, &system) || system.f_type != CGROUP2_SUPER_MAGIC || stat(name, &folder) ||
	    !S_ISDIR(folder.st_mode))
		return NULL;
	below = cgroups_path(host->cgroups, folder.st_ino);
	return below ? cgroup_folder(host, below) : NULL;
}

/* Returns 0 or -errno. */
static int look_into_cgroup(const struct host *host, const char *folder)
{
	char text[64];
	int length = slurp(host, text, sizeof(text), "%s/cgroup.procs", folder);

	/* A threaded cgroup has no list of processes. */
	return length >= 0 || length == -EOPNOTSUPP ? 0 : length;
}

/* Returns the folder of the cgroup that a name leads to in any way, which the caller frees. `err`: 0, or
 * -errno where there is no such cgroup below the mount, or it can't be looked into. */
static char *find_cgroup(const struct host *host, const char *name, int *err)
{
	char *folder = cgroup_folder(host, name), *elsewhere;

	*err = look_into_cgroup(host, folder);
	elsewhere = *err == -ENOENT ? cgroup_folder_elsewhere(host, name) : NULL;
	if (!elsewhere)
		return folder;
	free(folder);
	*err = look_into_cgroup(host, elsewhere);
	return elsewhere;
}

static void add_pattern(struct target *target, const char *text, bool container)
{
	*xappend(target->patterns, target->nr_patterns) =
		(struct cgroup_pattern){.text = xstrdup(text), .container = container};
}

/* Where the cgroups that a pattern fits are named in another way, too, the pattern becomes that of their
 * paths below the mount. */
static void add_cgroup_pattern(struct target *target, const char *name, const struct host *host)
{
	size_t root = cgroup_pattern_root(name);
	char *start = xasprintf("%.*s", (int)root, name), *folder, *text, *parts;
	int err;

	folder = find_cgroup(host, start, &err);
	text = xasprintf("%s%s", below_mount(host, folder), name + root);
	parts = xmalloc(strlen(text) + 2);
	append_parts(parts, 0, text);
	add_pattern(target, parts, false);
	free(parts);
	free(text);
	free(folder);
	free(start);
}

static int refuse_empty(const struct host *host, struct refusal *refusal)
{
	refuse(refusal, STATUS_USAGE, "option --cgroup");
	because(refusal, "a cgroup's name is missing");
	return instead(refusal, "it takes paths below %s with ',' between them; / is the root",
		       host->cgroup_mount);
}

static bool is_named(const struct target *target, const char *folder)
{
	for (size_t i = 0; i < target->nr_cgroups; i++)
		if (!target->cgroups[i].found && !strcmp(target->cgroups[i].path, folder))
			return true;
	return false;
}

static int add_cgroup(struct target *target, char *name, const struct host *host, struct refusal *refusal)
{
	char *folder;
	int err;

	if (!*name)
		return refuse_empty(host, refusal);
	folder = find_cgroup(host, name, &err);
	if (is_named(target, folder)) {
		free(folder);
		return 0;
	}
	*xappend(target->cgroups, target->nr_cgroups) =
		(struct cgroup){.path = folder, .name = xstrdup(name)};
	if (!err)
		return 0;
	refuse_cgroup(refusal, name, -err);
	if (err == -ENOENT)
		because(refusal, "there is no cgroup %s", folder);
	else
		because(refusal, "%s can't be looked into: %s", folder, strerror(-err));
	return instead(refusal, "see /proc/PID/cgroup, or: find %s -type d", host->cgroup_mount);
}

static bool is_in(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return !strncmp(folder, path, length) && (!path[length] || path[length] == '/');
}

static int refuse_twice(struct refusal *refusal, const char *inside, const char *outside)
{
	refuse(refusal, STATUS_USAGE, "option --cgroup");
	because(refusal, "what belongs to '%.150s' belongs to '%.150s' too, and would be counted twice",
		inside, outside);
	return instead(refusal, "name one of them, or count each by itself with --for-each-cgroup");
}

/* Whether a pattern matches a cgroup that contains this one; `path` is below the mount. */
static bool is_below_fitting(const char *path, const char *pattern)
{
	char *above = xstrdup(path), *slash;
	bool found = false;

	while (!found && (slash = strrchr(above, '/')) && slash > above) {
		*slash = '\0';
		found = cgroup_fits(pattern, above);
	}
	free(above);
	return found;
}

static int check_apart(const struct target *target, const struct host *host, struct refusal *refusal)
{
	for (size_t i = 0; i < target->nr_cgroups; i++) {
		const struct cgroup *one = &target->cgroups[i];

		for (size_t j = 0; j < target->nr_cgroups; j++)
			if (i != j && is_in(one->path, target->cgroups[j].path))
				return refuse_twice(refusal, one->name, target->cgroups[j].name);
		for (size_t j = 0; j < target->nr_patterns; j++)
			if (!target->patterns[j].container &&
			    is_below_fitting(one->path + strlen(host->cgroup_mount),
					     target->patterns[j].text))
				return refuse_twice(refusal, one->name, target->patterns[j].text);
	}
	return 0;
}

static int plan_cgroups(struct target *target, const char *names, const struct host *host,
			struct refusal *refusal)
{
	char *copy = xstrdup(names), *rest = copy, *name;
	int err = check_hierarchy(host, names, refusal);

	while (!err && (name = strsep(&rest, ",")))
		if (cgroup_is_pattern(name))
			add_cgroup_pattern(target, name, host);
		else
			err = add_cgroup(target, name, host, refusal);
	free(copy);
	return err;
}

/* Whether the id is a pod's uid: "01234567-89ab-cdef-0123-456789abcdef". */
static bool is_uid(const char *id)
{
	return strlen(id) == 36 && strspn(id, "0123456789abcdef-") == 36 && id[8] == '-';
}

static int plan_containers(struct target *target, const char *ids, const struct host *host,
			   struct refusal *refusal)
{
	char *copy = xstrdup(ids), *rest = copy, *id;
	int err = check_hierarchy(host, ids, refusal);

	while (!err && (id = strsep(&rest, ","))) {
		size_t digits = strspn(id, "0123456789abcdef");

		if ((digits && digits <= CONTAINER_ID_LENGTH && !id[digits]) || is_uid(id)) {
			add_pattern(target, id, true);
			continue;
		}
		refuse(refusal, STATUS_USAGE, "option --container '%s'", ids);
		because(refusal,
			"'%s' is neither the beginning of a container's id (up to %d digits 0-9a-f) nor a "
			"pod's uid",
			id, CONTAINER_ID_LENGTH);
		err = instead(refusal, "see docker ps --no-trunc, or crictl ps; by a path: -G PATH");
	}
	free(copy);
	return err;
}

/* The length of the path of a cgroup that contains all that the patterns fit; 0: the root. */
static size_t common_root(const struct target *target)
{
	const char *first = target->patterns[0].text;
	size_t common = cgroup_pattern_root(first);

	for (size_t i = 0; i < target->nr_patterns; i++) {
		const char *text = target->patterns[i].text;
		size_t root = target->patterns[i].container ? 0 : cgroup_pattern_root(text);

		/* Ends where a part of both ends, and both have the same parts. */
		while (common && (root < common || strncmp(first, text, common) ||
				  (root > common && text[common] != '/') || first[common] != '/'))
			common--;
	}
	return target->patterns[0].container ? 0 : common;
}

/* Adds a pattern that fits only this path. fnmatch(3) takes a backslash for an escape. */
static void add_exact(struct target *target, const char *path)
{
	char *text = xcalloc(2 * strlen(path) + 1, 1), *to = text;

	for (const char *at = path; *at; at++) {
		if (*at == '\\')
			*to++ = *at;
		*to++ = *at;
	}
	add_pattern(target, text, false);
	free(text);
}

bool target_by_patterns(struct target *target, const struct host *host)
{
	size_t mount = strlen(host->cgroup_mount);

	if (!target->nr_patterns)
		return false;
	for (size_t i = 0; i < target->nr_cgroups; i++)
		if (!target->cgroups[i].path[mount]) /* what is in the root is in no other one */
			return false;
	for (size_t i = 0; i < target->nr_cgroups; i++) {
		add_exact(target, target->cgroups[i].path + mount);
		free(target->cgroups[i].name);
		free(target->cgroups[i].path);
	}
	target->nr_cgroups = 0;
	return true;
}

void target_tell_by_samples(struct target *target, const struct host *host)
{
	size_t root;

	target->by_samples = target_by_patterns(target, host);
	root = target->by_samples ? common_root(target) : 0;
	if (!root)
		return;
	target->folder = xasprintf("%s%.*s", host->cgroup_mount, (int)root, target->patterns[0].text);
	if (!access(target->folder, F_OK))
		return;
	free(target->folder);
	target->folder = NULL;
}

/* Whether the place can be used. One that is to be told apart is used for the same path in the next
 * execution. */
static bool is_free(const struct target *target, const struct cgroup *cgroup, const struct cgroup *next)
{
	if (!cgroup->vacant || cgroup->of_any != next->of_any)
		return false;
	return (!next->of_any && !target->keeps_places) ||
	       (cgroup->past && !strcmp(cgroup->name, next->name));
}

size_t target_take_in(struct target *target, const struct host *host, const char *path, bool of_any)
{
	struct cgroup cgroup = {
		.name = xstrdup(path), .path = cgroup_folder(host, path), .found = true, .of_any = of_any};
	size_t i = 0;

	while (i < target->nr_cgroups && !is_free(target, &target->cgroups[i], &cgroup))
		i++;
	if (i == target->nr_cgroups) {
		(void)xappend(target->cgroups, target->nr_cgroups);
	} else {
		cgroup.generation = target->cgroups[i].generation + 1;
		free(target->cgroups[i].name);
		free(target->cgroups[i].path);
	}
	target->cgroups[i] = cgroup;
	return i;
}

bool target_has_cgroup(const struct target *target, const struct host *host, const char *path, bool inside)
{
	for (size_t i = 0; i < target->nr_cgroups; i++) {
		const char *named = target->cgroups[i].path + strlen(host->cgroup_mount);

		if (!target->cgroups[i].found && (inside ? is_in(path, named) : !strcmp(path, named)))
			return true;
	}
	return false;
}

/* --- what is told apart ----------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum per per;
} keys[] = {
	{"cpu", PER_CPU},   {"core", PER_CORE},	    {"socket", PER_SOCKET},
	{"node", PER_NODE}, {"thread", PER_THREAD}, {"cgroup", PER_CGROUP},
};
#define KEYS ARRAY_SIZE(keys)

static int add_key(struct target *target, const char *name, size_t length, struct refusal *refusal)
{
	struct alternatives alternatives;

	alternatives_begin(&alternatives, name, length);
	for (size_t i = 0; i < KEYS; i++) {
		if (strlen(keys[i].name) == length && !strncmp(keys[i].name, name, length)) {
			target->per |= keys[i].per;
			return 0;
		}
		alternatives_offer(&alternatives, keys[i].name);
	}
	refuse(refusal, STATUS_USAGE, "option --per '%.*s'", (int)length, name);
	because(refusal, "there is no such key");
	return alternatives_end(&alternatives, refusal, "keys: %s", alternatives.all);
}

static int plan_keys(struct target *target, const char *names, struct refusal *refusal)
{
	size_t length;

	for (const char *at = NULL; (at = list_next(names, at, &length));)
		if (add_key(target, at, length, refusal))
			return -1;
	return 0;
}

static int check_keys(const struct target *target, const struct host *host, struct refusal *refusal)
{
	unsigned int of_cpus = PER_CPU | PER_CORE | PER_SOCKET | PER_NODE;

	refuse(refusal, STATUS_USAGE, "option --per");
	if (target->per & of_cpus && !target->cpus_given) {
		because(refusal, "processes are counted wherever they run");
		return instead(refusal, "give the CPUs too: -a or -C CPUS");
	}
	if (target->per & PER_CGROUP && !target_in_cgroups(target)) {
		because(refusal, "there are no cgroups to tell apart");
		return instead(refusal, "give them: -G PATH,… or --for-each-cgroup PATH,…; or take all: -a");
	}
	if (target->per & PER_THREAD && !target->nr_pids && !target->nr_tids) {
		because(refusal, target->cpus_given ? "CPUs are counted whatever thread runs there"
						    : "a command begins with one thread, and those that it "
						      "makes are counted with the one that made them");
		return instead(refusal, "count threads that are there: -p PID or -t TID");
	}
	if (target->per & PER_NODE && cpus_next(&host->nodes, 0) < 0) {
		refusal->status = STATUS_REFUSED;
		because(refusal, "this kernel knows no NUMA nodes");
		return instead(refusal, "--per socket");
	}
	*refusal = (struct refusal){0};
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

static const struct choice {
	const char *option, *given;
} no_choice;

/* Checks that the target is named in one way only. */
static int check_one_target(const struct options *options, struct refusal *refusal)
{
	const struct choice choices[] = {
		{"--pid", options->pids},
		{"--tid", options->tids},
		{"--cgroup", options->cgroups},
		{"--for-each-cgroup", options->each_cgroup},
		{"--container", options->containers},
	};
	const struct choice *first = &no_choice;

	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		if (!choices[i].given)
			continue;
		if (first->given) {
			refuse(refusal, STATUS_USAGE, "options %s and %s", first->option, choices[i].option);
			because(refusal, "a run has one target");
			return instead(refusal, "use one of them");
		}
		first = &choices[i];
	}
	if (first->given && (options->all_cpus || options->cpus) && (options->pids || options->tids)) {
		refuse(refusal, STATUS_USAGE, "option %s together with CPUs", first->option);
		because(refusal, "processes are counted wherever they run; the kernel's times can't tell a "
				 "CPU on which one does not run from a counter that is not free");
		return instead(refusal, "leave the CPUs out, or bind the process: taskset -cp CPUS PID");
	}
	if (!options->all_cpus || !options->cpus)
		return 0;
	refuse(refusal, STATUS_USAGE, "options --all-cpus and --cpu");
	return because(refusal, "they contradict each other");
}

static int check_times(const struct options *options, struct refusal *refusal)
{
	if (options->interval_count && !options->interval_ms) {
		refuse(refusal, STATUS_USAGE, "option --interval-count");
		because(refusal, "there are no intervals to be counted");
		return instead(refusal, "give -I MS as well, or --duration instead");
	}
	if (options->delay_ms < 0 && !options->control) {
		refuse(refusal, STATUS_USAGE, "option --delay -1");
		because(refusal, "nothing would ever switch counting on");
		return instead(refusal, "give --control fifo:CTL as well");
	}
	return 0;
}

int target_plan(struct target *target, const struct options *options, const struct host *host,
		struct refusal *refusal)
{
	const char *cgroups = options->cgroups ? options->cgroups : options->each_cgroup;

	if (options->nr_rest)
		target->command = options->rest;
	target->begins_off = options->delay_ms;
	if (check_one_target(options, refusal) || check_times(options, refusal))
		return -1;
	/* Events of a cgroup are opened per CPU; on all CPUs if none are named. */
	if ((options->all_cpus || options->cpus || cgroups || options->containers) &&
	    plan_cpus(target, options->cpus, host, refusal))
		return -1;
	if (options->pids &&
	    plan_ids(&target->pids, &target->nr_pids, "process", "--pid", options->pids, refusal))
		return -1;
	if (options->tids &&
	    plan_ids(&target->tids, &target->nr_tids, "thread", "--tid", options->tids, refusal))
		return -1;
	if (cgroups && plan_cgroups(target, cgroups, host, refusal))
		return -1;
	if (options->containers && plan_containers(target, options->containers, host, refusal))
		return -1;
	if (options->each_cgroup)
		target->per |= PER_CGROUP;
	if (options->per && plan_keys(target, options->per, refusal))
		return -1;
	if (!target->command && !target->nr_pids && !target->nr_tids && !target->cpus_given) {
		refuse(refusal, STATUS_USAGE, "a run without a target");
		because(refusal, "there is nothing to measure");
		return instead(refusal, "give -- COMMAND, -p PID, -t TID, -G CGROUP, -a or -C CPUS");
	}
	if (target->per & PER_CGROUP && target->cpus_given && !target_in_cgroups(target)) {
		if (check_hierarchy(host, "/", refusal))
			return -1;
		add_pattern(target, CGROUPS_ALL, false);
	}
	if (target->nr_cgroups && !(target->per & PER_CGROUP) && check_apart(target, host, refusal))
		return -1;
	return target->per ? check_keys(target, host, refusal) : 0;
}

void target_release(struct target *target)
{
	free(target->pids);
	free(target->tids);
	for (size_t i = 0; i < target->nr_cgroups; i++) {
		free(target->cgroups[i].name);
		free(target->cgroups[i].path);
	}
	free(target->cgroups);
	free(target->folder);
	for (size_t i = 0; i < target->nr_patterns; i++)
		free(target->patterns[i].text);
	free(target->patterns);
	*target = (struct target){0};
}

bool target_counts(const struct target *target, const struct cpus *cpus)
{
	for (int cpu = cpus_next(cpus, 0); cpu >= 0; cpu = cpus_next(cpus, cpu + 1))
		if (cpus_has(&target->cpus, cpu))
			return true;
	return false;
}
