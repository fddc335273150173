// SPDX-License-Identifier: GPL-2.0-only
#include "command/machine_place.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alternatives.h"
#include "base/array.h"
#include "base/beside.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "option/models.h"

#define DRIVER	 "run"
#define EMULATOR "nhm-bochs"
#define SETUP	 "user/machine/setup NAME:SUITE, as in 5.10:bullseye"

/* --- models and kernels ----------------------------------------------------------------------- */

/* The names of the kernels that are built. */
struct kernels {
	struct dirent **entries;
	int nr;
};

static bool is_built(const char *folder, const char *name)
{
	char *ready = xasprintf("%s/%s/boot.json", folder, name);
	bool built = !access(ready, R_OK);

	free(ready);
	return built;
}

static struct kernels kernels_of(const struct machine_place *place)
{
	char *folder = xasprintf("%s/kernel", place->built);
	struct kernels kernels = {0};
	int nr = scandir(folder, &kernels.entries, NULL, versionsort);

	for (int i = 0; i < nr; i++) {
		if (is_built(folder, kernels.entries[i]->d_name))
			kernels.entries[kernels.nr++] = kernels.entries[i];
		else
			free(kernels.entries[i]);
	}
	free(folder);
	return kernels;
}

static void kernels_release(struct kernels *kernels)
{
	for (int i = 0; i < kernels->nr; i++)
		free(kernels->entries[i]);
	free(kernels->entries);
}

int machine_check_model(const char *option, const char *model, struct refusal *refusal)
{
	struct alternatives alternatives;

	for (size_t i = 0; machine_models[i]; i++)
		if (!strcmp(machine_models[i], model))
			return 0;
	alternatives_begin(&alternatives, model, strlen(model));
	alternatives_offer_all(&alternatives, machine_models);
	refuse(refusal, STATUS_USAGE, "option %s", option);
	because(refusal, "the emulated machine has no model '%.60s'", model);
	return alternatives_end(&alternatives, refusal, "models: %s", alternatives.all);
}

static int refuse_kernel(const struct kernels *kernels, const char *name, struct refusal *refusal)
{
	char near[200], known[300] = "";
	struct nearest nearest;

	nearest_begin(&nearest, name, 3);
	for (int i = 0; i < kernels->nr; i++) {
		nearest_offer(&nearest, kernels->entries[i]->d_name);
		list_append(known, sizeof(known), kernels->entries[i]->d_name);
	}
	refuse(refusal, STATUS_USAGE, "option --kernel '%.100s'", name);
	because(refusal, "no such kernel is built, and there is no such file; built: %s",
		*known ? known : "none");
	if (nearest_print(&nearest, near, sizeof(near)))
		return instead(refusal, "did you mean %s?", near);
	return instead(refusal, "in the source tree: " SETUP);
}

/* A kernel's name, or the path of a bzImage or vmlinux. */
static int check_kernel(const struct machine_place *place, const char *name, struct refusal *refusal)
{
	struct kernels kernels = kernels_of(place);
	bool found = !access(name, R_OK);

	for (int i = 0; i < kernels.nr; i++)
		found = found || !strcmp(kernels.entries[i]->d_name, name);
	if (!found)
		refuse_kernel(&kernels, name, refusal);
	kernels_release(&kernels);
	return found ? 0 : -1;
}

/* The emulator's limits: check() of machine/nehalem.py. */
#define PROCESSORS_MOST 16

static int check_topology(const struct machine_kind *kind, struct refusal *refusal)
{
	__u64 packages = kind->packages ? kind->packages : 1, cores = kind->cores ? kind->cores : 1;
	__u64 nr = packages * cores * (kind->threads ? kind->threads : 1);

	if (nr > PROCESSORS_MOST) {
		refuse(refusal, STATUS_USAGE, "a machine of %llu logical processors", nr);
		because(refusal, "it has at most %d", PROCESSORS_MOST);
		return instead(refusal, "give less --packages, --cpus or --threads");
	}
	if (packages > 1 && cores & (cores - 1)) {
		refuse(refusal, STATUS_USAGE, "option --cpus '%llu'", cores);
		because(refusal, "with several packages, the cores of a package must be a power of two");
		return instead(refusal, "give 1, 2, 4 or 8");
	}
	return 0;
}

/* The kernel's clock can't be set to less than the machine has run. */
#define DATE_LEAST 86400

#define NUMBERS (1ULL << 32) /* the driver passes dates and numbers on as 32 bits */

static bool is_number(const char *text, unsigned long long least)
{
	__u64 number;

	return number_whole(text, &number) && number >= least && number < NUMBERS;
}

static int check_date(const char *date, struct refusal *refusal)
{
	if (!strcmp(date, "now") || !strcmp(date, "today") || is_number(date, DATE_LEAST))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --date '%.60s'", date);
	because(refusal, "it is neither now, nor today, nor seconds since 1970, from %d to %llu", DATE_LEAST,
		NUMBERS - 1);
	return instead(refusal, "--date now");
}

static int check_number(const char *number, struct refusal *refusal)
{
	if (is_number(number, 0))
		return 0;
	refuse(refusal, STATUS_USAGE, "option --vary '%.60s'", number);
	because(refusal, "it takes a whole number from 0 to 4294967295");
	return instead(refusal, "--vary 1");
}

int machine_check_kind(const struct machine_kind *kind, const struct machine_place *place,
		       struct refusal *refusal)
{
	if (check_topology(kind, refusal) || (kind->date && check_date(kind->date, refusal)) ||
	    (kind->vary && check_number(kind->vary, refusal)))
		return -1;
	return kind->kernel ? check_kernel(place, kind->kernel, refusal) : 0;
}

/* --- what --machine=… says -------------------------------------------------------------------- */

#define KIND(member) offsetof(struct machine_kind, member)

#define TEXT(member)		    KIND(member), 0, 0, false
#define NUMBER(member, least, most) KIND(member), least, most, false
#define FLAG(member)		    KIND(member), 0, 0, true

/* The options of nhmtap machine that --machine takes as well. `most` is 0 of what is no number. */
static const struct {
	const char *name;
	size_t offset;
	__u64 least, most;
	bool is_flag;
} kind_words[] = {
	{"model", TEXT(model)},
	{"cpus", NUMBER(cores, 1, MACHINE_CORES_MOST)},
	{"threads", NUMBER(threads, 1, MACHINE_THREADS_MOST)},
	{"packages", NUMBER(packages, 1, MACHINE_PACKAGES_MOST)},
	{"memory", NUMBER(memory, MACHINE_MEMORY_LEAST, MACHINE_MEMORY_MOST)},
	{"kernel", TEXT(kernel)},
	{"date", TEXT(date)},
	{"vary", TEXT(vary)},
	{"ips", NUMBER(ips, MACHINE_IPS_LEAST, MACHINE_IPS_MOST)},
	{"no-snapshot", FLAG(no_snapshot)},
};

static int refuse_word(const char *word, struct refusal *refusal, const char *why)
{
	struct alternatives alternatives;

	alternatives_begin(&alternatives, word, strcspn(word, "="));
	for (size_t i = 0; i < ARRAY_SIZE(kind_words); i++)
		alternatives_offer(&alternatives, kind_words[i].name);
	refuse(refusal, STATUS_USAGE, "option --machine with '%.100s'", word);
	because(refusal, "%s", why);
	return alternatives_end(&alternatives, refusal, "--machine=MODEL,cpus=2; it takes %s",
				alternatives.all);
}

static int set_number(size_t i, const char *value, __u64 *number, struct refusal *refusal)
{
	if (number_whole(value, number) && *number >= kind_words[i].least && *number <= kind_words[i].most)
		return 0;
	refuse(refusal, STATUS_USAGE, "option --machine with %s '%.60s'", kind_words[i].name, value);
	because(refusal, "it takes a whole number from %llu to %llu", kind_words[i].least,
		kind_words[i].most);
	return instead(refusal, "nhmtap help machine describes it");
}

static int set_word(struct machine_kind *kind, size_t i, const char *value, struct refusal *refusal)
{
	void *place = (char *)kind + kind_words[i].offset;

	if (kind_words[i].is_flag != !value)
		return refuse_word(kind_words[i].name, refusal,
				   value ? "it takes no value" : "its value is missing");
	if (kind_words[i].is_flag)
		*(bool *)place = true;
	else if (kind_words[i].most)
		return set_number(i, value, place, refusal);
	else
		*(const char **)place = value;
	return 0;
}

static int read_word(struct machine_kind *kind, char *word, struct refusal *refusal)
{
	char *equals = strchr(word, '=');

	if (equals)
		*equals = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kind_words); i++)
		if (!strcmp(word, kind_words[i].name))
			return set_word(kind, i, equals ? equals + 1 : NULL, refusal);
	return refuse_word(word, refusal, "there is no such choice");
}

/* The first word may be a model's name alone. */
static bool is_model(const char *word)
{
	return !strchr(word, '=') && strcmp(word, "no-snapshot") != 0;
}

int machine_read_kind(const char *text, struct machine_kind *kind, struct refusal *refusal)
{
	char *at, *word;

	*kind = (struct machine_kind){.text = xstrdup(text)};
	at = kind->text;
	for (bool first = true; (word = strsep(&at, ",")); first = false) {
		if (first && is_model(word))
			kind->model = word;
		else if (read_word(kind, word, refusal))
			return -1;
	}
	return kind->model ? machine_check_model("--machine", kind->model, refusal) : 0;
}

/* --- places ----------------------------------------------------------------------------------- */

/* Where the driver may be, relative to the executable, and what was built: in the source tree, in that tree
 * with a build for sanitizers, and installed. */
static const struct {
	const char *folder, *built;
} places[] = {
	{"../user/machine", "machine"},
	{"../../user/machine", "../machine"},
	{"../lib/nhmtap/machine", "../lib/nhmtap/machine/built"},
};

/* Resolves "..", for messages. A path that is not there stays as it is. */
static void shorten(char *path)
{
	char *whole = realpath(path, NULL);

	if (whole && strlen(whole) < MACHINE_PATH)
		strcpy(path, whole);
	free(whole);
}

static bool find_beside(struct machine_place *place)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char *driver = xasprintf("%s/" DRIVER, places[i].folder);
		bool found = beside_program(place->folder, sizeof(place->folder),
					    (const char *const[]){driver, NULL}, X_OK);

		free(driver);
		if (!found)
			continue;
		place->folder[strlen(place->folder) - strlen("/" DRIVER)] = '\0';
		beside_program(place->built, sizeof(place->built),
			       (const char *const[]){places[i].built, NULL}, X_OK);
		shorten(place->folder);
		shorten(place->built);
		return true;
	}
	return false;
}

static int refuse_folder(const char *folder, struct refusal *refusal)
{
	refuse(refusal, STATUS_REFUSED, "the emulated machine in $NHMTAP_MACHINE, '%.200s'", folder);
	refusal->error = errno;
	because(refusal, "its driver '" DRIVER "' is not there: %s", strerror(errno));
	return instead(refusal, "name the folder with '" DRIVER "', or unset the variable");
}

static int find_named(struct machine_place *place, const char *folder, struct refusal *refusal)
{
	char *driver = xasprintf("%s/" DRIVER, folder);
	int err = access(driver, X_OK);

	free(driver);
	if (err)
		return refuse_folder(folder, refusal);
	snprintf(place->folder, sizeof(place->folder), "%s", folder);
	snprintf(place->built, sizeof(place->built), "%s/built", folder);
	if (access(place->built, X_OK))
		snprintf(place->built, sizeof(place->built), "%s/../../build/machine", folder);
	return 0;
}

int machine_find(struct machine_place *place, struct refusal *refusal)
{
	const char *named = getenv("NHMTAP_MACHINE"), *built = getenv("NHM_BUILD");

	if (named && *named) {
		if (find_named(place, named, refusal))
			return -1;
	} else if (!find_beside(place)) {
		refuse(refusal, STATUS_REFUSED, "the emulated machine");
		if (access("/proc/self/exe", F_OK)) {
			because(refusal, "it is looked for beside this program, whose path can't be read: "
					 "/proc is not mounted");
			return instead(refusal, "mount -t proc proc /proc");
		}
		because(refusal, "it is not installed beside this program");
		return instead(refusal, "install it (make install-machine), or set NHMTAP_MACHINE to a "
					"source tree's user/machine");
	}
	if (built && *built)
		snprintf(place->built, sizeof(place->built), "%s", built);
	return 0;
}

int machine_check_built(const struct machine_place *place, const char *asked, struct refusal *refusal)
{
	char *emulator = xasprintf("%s/" EMULATOR, place->built);
	int err = access(emulator, X_OK);

	free(emulator);
	if (!err)
		return 0;
	refuse(refusal, STATUS_REFUSED, "%s", asked);
	because(refusal, "the emulated machine is not built: '%.200s' has no " EMULATOR, place->built);
	return instead(refusal, "build it once, in some minutes: make machine, in the source tree");
}

/* --- what there is ---------------------------------------------------------------------------- */

/* CPUID pads the processor's name with blanks. */
static void print_model(size_t model, FILE *out)
{
	fprintf(out, "  %-15s ", machine_models[model]);
	for (const char *at = machine_brands[model]; *at; at++)
		if (*at != ' ' || at[1] != ' ')
			fputc(*at, out);
	fputs(model ? "\n" : " (the default)\n", out);
}

/* A row of the table adds something to an event: one event may have several. */
static bool is_told(size_t nr, size_t model)
{
	const struct machine_event *event = &machine_events[nr];

	for (size_t i = 0; i < nr; i++)
		if (machine_counts(model, &machine_events[i]) && !strcmp(machine_events[i].name, event->name))
			return true;
	return false;
}

/* Events of a code share the part of their names before the dot. */
static void print_events(size_t model, FILE *out)
{
	size_t nr = 0;

	fprintf(out, "\nevents that %s counts; what uses another one is told:\n", machine_models[model]);
	for (size_t i = 0; i < nr_machine_events; i++) {
		const struct machine_event *event = &machine_events[i];

		if (!machine_counts(model, event) || is_told(i, model))
			continue;
		fprintf(out, "  0x%02X 0x%02X %s\n", event->code, event->umask, event->name);
		nr++;
	}
	if (!nr)
		fputs("  some of NetBurst's, which have no list\n", out);
}

static size_t number_of(const char *model)
{
	size_t i = 0;

	while (model && strcmp(machine_models[i], model) != 0)
		i++;
	return i;
}

void machine_print(const struct machine_place *place, const char *model, FILE *out)
{
	struct kernels kernels = kernels_of(place);

	fprintf(out, "models (--model):\n");
	for (size_t i = 0; machine_models[i]; i++)
		print_model(i, out);
	fprintf(out, "\nkernels (--kernel) that are built in %s:\n", place->built);
	for (int i = 0; i < kernels.nr; i++)
		fprintf(out, "  %s\n", kernels.entries[i]->d_name);
	if (!kernels.nr)
		fputs("  none; make machine in the source tree builds two\n", out);
	fputs("Further ones of Debian's, in the source tree: " SETUP ".\n"
	      "--kernel takes the path of a bzImage or vmlinux as well.\n",
	      out);
	print_events(number_of(model), out);
	kernels_release(&kernels);
}

/* --- the driver ------------------------------------------------------------------------------- */

void driver_line_add_kind(struct arguments *line, const struct machine_kind *kind)
{
	arguments_add_option(line, "--model", kind->model);
	arguments_add_option(line, "--kernel", kind->kernel);
	arguments_add_number(line, "--packages", kind->packages);
	arguments_add_number(line, "--cpus", kind->cores);
	arguments_add_number(line, "--threads", kind->threads);
	arguments_add_number(line, "--memory", kind->memory);
	arguments_add_option(line, "--date", kind->date);
	arguments_add_option(line, "--vary", kind->vary);
	arguments_add_number(line, "--ips", kind->ips);
	if (kind->no_snapshot)
		arguments_add(line, "--no-snapshot");
}

void driver_line_begin(struct arguments *line)
{
	*line = (struct arguments){0};
	arguments_add(line, DRIVER);
	arguments_add(line, "--here");
}

int machine_execute(const struct machine_place *place, const struct arguments *line, struct refusal *refusal)
{
	char *driver = xasprintf("%s/" DRIVER, place->folder);

	/* The driver keeps from the command what the command has not been given. */
	if (!getenv("NHM_BUILD"))
		setenv("NHM_BUILD_FOUND", "1", true);
	setenv("NHM_BUILD", place->built, true);
	execv(driver, line->words);
	refuse(refusal, STATUS_REFUSED, "the emulated machine");
	refusal->error = errno;
	because(refusal, "its driver %.200s can't be run: %s", driver, strerror(errno));
	free(driver);
	return instead(refusal, "see that /usr/bin/python3 is there");
}
