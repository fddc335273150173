// SPDX-License-Identifier: GPL-2.0-only
#include "session/names.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/note.h"
#include "collection/sideband.h"
#include "naming/ksymbols.h"
#include "record/code.h"
#include "unwind/unwinding.h"

/* Notes of the last millisecond are not read yet: a CPU takes the time of a note before it writes it, so an
 * older note of another CPU may still come. The same holds for the samples of a stream. */
#define SETTLED_NS 1000000

/*
 * Pause between two readings of the kernel's notes. The minimum is short so that the files of a process in
 * another root are found before it ends; afterwards they can't be found. The pause grows to the maximum if
 * reading has taken more than its share of a CPU in the last seconds. In that time, a CPU's ring has room for
 * the notes of 250 dynamically linked programs that start, which is more than a CPU can start.
 */
#define PAUSE_LEAST_NS 2000000
#define PAUSE_MOST_NS  100000000
#define SHARE	       1000 /* reading may take 1/1000 of a CPU */
#define LAST_SECONDS   2500000000

/* Symbols of a file that were not used for this time, nor in the last interval, are forgotten, and read again
 * when needed: programs come and go. */
#define FORGOTTEN_NS 60000000000ULL

/* What could not be published is published with the next notes, or after this time if there are none. */
#define PUBLISH_NS (2ULL * PAUSE_MOST_NS)

/* A connection to the kernel's notes of some processes, or of all. */
struct listening {
	struct listening *next;
	struct names *names;
	struct sideband *sideband;
	struct source *source, *pause;
	__u64 paid_until; /* CLOCK_MONOTONIC, ns: until then, readings have used up their share */
	bool crowded;	  /* the last notes came before `paid_until` */
	bool of_all;	  /* notes of all processes */
	bool data;	  /* notes of mappings without code, too */
	pid_t child;
	size_t readers;
	bool held; /* `note` was read, but is not handled yet */
	struct sideband_note note;
};

struct names {
	const struct host *host;
	struct loop *loop;
	struct notices *notices;
	struct listening *listening;
	struct listening *kernel;  /* one of these: of code that the kernel makes; NULL: not open */
	struct listening *cgroups; /* likewise: of cgroups that are made */
	struct reader *readers;
	struct mappings *mappings;
	struct mappings *data; /* of data, too; NULL: nobody asks for names of data */
	struct ksymbols ksymbols;
	struct naming *naming; /* NULL: only places are asked for, no names */
	bool lines;	       /* `naming` finds source lines */
	bool variables, types; /* `naming` finds symbols of data, and types */
	struct names_limits limits;
	__u64 most_ns;		       /* see names_wait_at_most() */
	struct background *background; /* the interface to `naming` with deadlines */
	__u64 lost;		       /* notes lost by listenings that were closed */
	size_t bytes_before;	       /* see has_many() */
	__u64 lost_known;	       /* notes lost so far when ended processes were last searched for */
	struct unwinding *unwinding;   /* NULL: no stacks are walked by unwind tables */
	struct source *publishing;     /* timer for what could not be published yet; NULL: nothing */
	char kallsyms[300];
};

struct reader {
	struct reader *next;
	struct names *names;
	struct listening *listening;
	struct listening *kernel; /* NULL: not asked for, or not possible */
	struct codes *codes;	  /* of this interval; NULL: not created yet */
	struct code_account account;
	__u64 since, interval_ms;
	bool unhurried;
	void (*due)(void *context); /* see reader_on_due() */
	void *context;		    /* of due */
	bool timed;		    /* the interval has ended: the time for its names runs */
	__u64 deadline, waiting;    /* then: see codes_time() */
};

struct names *names_new(const struct host *host, struct loop *loop, struct notices *notices)
{
	struct names *names = xcalloc(1, sizeof(*names));

	names->host = host;
	names->loop = loop;
	names->notices = notices;
	names->mappings = mappings_new();
	return names;
}

void names_limit(struct names *names, const struct names_limits *limits)
{
	names->limits = *limits;
}

static void close_naming(struct names *names)
{
	background_close(names->background);
	naming_close(names->naming);
	names->background = NULL;
	names->naming = NULL;
}

void names_release(struct names *names)
{
	if (!names)
		return;
	close_naming(names);
	loop_remove(names->loop, &names->publishing);
	unwinding_close(names->unwinding);
	mappings_release(names->mappings);
	if (names->data)
		mappings_release(names->data);
	ksymbols_release(&names->ksymbols);
	free(names);
}

int names_unwind(struct names *names, struct unwinding **unwinding, struct refusal *refusal)
{
	if (!names->unwinding &&
	    unwinding_open(&names->unwinding, names->mappings, names->limits.unwinding, names->host, refusal))
		return -1;
	*unwinding = names->unwinding;
	return 0;
}

/* --- names ------------------------------------------------------------------------------------ */

/* Opens the naming, or opens it again if source lines are needed now. With another host root (a test),
 * kallsyms of that root is used. */
static void open_naming(struct names *names, unsigned int detail, bool intervals)
{
	struct naming_settings settings = {.lines = names->lines ||
						    detail & (CODE_LINE | CODE_INLINED | CODE_TYPE),
					   .types = names->types || detail & CODE_TYPE,
					   .data = names->variables || detail & CODE_OF_DATA,
					   .memory = names->limits.memory,
					   .sparing = names->limits.sparing};

	/* Types of data need all lines, so they have the usual limit. */
	if (names->limits.few_lines && settings.types)
		settings.memory = 0;
	else
		settings.few_lines = names->limits.few_lines;
	if (!(detail & (CODE_SYMBOL | CODE_LINE | CODE_OF_DATA)) ||
	    (names->naming && settings.lines == names->lines && settings.data == names->variables &&
	     settings.types == names->types))
		return;
	close_naming(names);
	names->lines = settings.lines;
	names->variables = settings.data;
	names->types = settings.types;
	snprintf(names->kallsyms, sizeof(names->kallsyms), "%s/proc/kallsyms", names->host->root);
	if (names->host->root[0])
		settings.kallsyms = names->kallsyms;
	names->naming = naming_open(&settings);
	/* The slowest lookup, of the kernel's symbols, is done now, so that it can't delay an interval. */
	if (intervals) {
		naming_kernel(names->naming, ~0ULL);
		naming_wait(names->naming);
	}
	names->background = background_open(names->naming);
	/* What was read without lines is read again with them. */
	for (struct reader *reader = names->readers; reader; reader = reader->next)
		if (reader->codes)
			codes_look_in(reader->codes, names->background);
}

/* --- notes ------------------------------------------------------------------------------------ */

/* Finds the listening whose next note is the oldest; only notes before `before` count. */
static struct listening *next_note(struct names *names, __u64 before)
{
	struct listening *first = NULL;

	for (struct listening *one = names->listening; one; one = one->next) {
		if (!one->held)
			one->held = sideband_next(one->sideband, before, &one->note);
		if (one->held && (!first || one->note.time < first->note.time))
			first = one;
	}
	return first;
}

static void publish_lists(void *context)
{
	struct names *names = context;

	loop_remove(names->loop, &names->publishing);
	if (names->unwinding && unwinding_publish(names->unwinding, false))
		names->publishing =
			loop_at(names->loop, clock_ns(CLOCK_MONOTONIC) + PUBLISH_NS, publish_lists, names);
}

static void pause_before_look(struct listening *listening);

static void take_of_process(struct names *names, const struct sideband_note *note)
{
	if (!note->data)
		mappings_take(names->mappings, note);
	if (names->data)
		mappings_take(names->data, note);
}

/* Reads and handles all pending notes, and has those that are too new read later. `look`: see
 * mappings_look_at_executed(). Returns whether there were any. */
static bool take_notes(struct names *names, bool all, bool look)
{
	__u64 before = all ? ~0ULL : clock_ns(CLOCK_MONOTONIC) - SETTLED_NS;
	struct listening *next;
	bool any = false;

	/* A crowded listening has its next reading scheduled and does not wait for notes. */
	for (struct listening *one = names->listening; one; one = one->next)
		if (!one->crowded)
			sideband_woken(one->sideband);
	while ((next = next_note(names, before))) {
		if (next->note.kind == SIDEBAND_KSYMBOL)
			ksymbols_take(&names->ksymbols, &next->note);
		else if (next->note.kind != SIDEBAND_CGROUP)
			take_of_process(names, &next->note);
		else if (!names->host->cgroup_v1[0]) /* the notes would be about version 1's cgroups */
			cgroups_made(names->host->cgroups, next->note.cgroup, next->note.path);
		next->held = false;
		any = true;
	}
	for (struct listening *one = names->listening; one; one = one->next)
		if (!one->crowded && sideband_has_more(one->sideband))
			pause_before_look(one);
	mappings_look_at_executed(names->mappings, look);
	if (names->data) /* only its users and roots would be looked up */
		mappings_look_at_executed(names->data, false);
	publish_lists(names);
	return any;
}

/* The same for pending notes of code that the kernel makes, alone. */
static void take_of_kernel(void *context)
{
	struct names *names = context;
	struct listening *kernel = names->kernel;

	while (kernel && (kernel->held || sideband_next(kernel->sideband, ~0ULL, &kernel->note))) {
		ksymbols_take(&names->ksymbols, &kernel->note);
		kernel->held = false;
	}
}

/* If processes and mappings take so much memory, what refers to them is named, so that those that have ended
 * can be forgotten. */
#define MANY_BYTES (4UL << 20)

static size_t bytes_of_mappings(const struct names *names)
{
	return mappings_bytes(names->mappings) + (names->data ? mappings_bytes(names->data) : 0);
}

/* Whether they take that much, and much more than after the last naming: those of processes that run stay. */
static bool has_many(struct names *names)
{
	size_t bytes = bytes_of_mappings(names);

	if (bytes < names->bytes_before)
		names->bytes_before = bytes;
	return bytes > MANY_BYTES && bytes > names->bytes_before + MANY_BYTES / 2;
}

/* Has everything named if addresses mean something else from now on, or if much waits to be forgotten. */
static void tell_readers(struct names *names)
{
	bool many = has_many(names);
	bool replaced = mappings_replaced(names->mappings) | ksymbols_replaced(&names->ksymbols);

	for (struct reader *reader = names->readers; reader && (many || replaced); reader = reader->next)
		if (reader->due)
			reader->due(reader->context);
	if (many)
		names->bytes_before = bytes_of_mappings(names);
}

static void on_pause_over(void *context);

static void pause_before_look(struct listening *listening)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), until = listening->paid_until;

	if (until < now + PAUSE_LEAST_NS)
		until = now + PAUSE_LEAST_NS;
	if (until > now + PAUSE_MOST_NS)
		until = now + PAUSE_MOST_NS;
	if (!listening->pause)
		listening->pause = loop_at(listening->names->loop, until, on_pause_over, listening);
}

/* Reads notes after a pause. If notes come faster than they may be read, the next reading is scheduled at
 * once: waiting for the next note would only wake the session once more. */
static void on_pause_over(void *context)
{
	struct listening *listening = context;
	__u64 begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), since = clock_ns(CLOCK_MONOTONIC) - LAST_SECONDS;

	listening->pause = NULL;
	if (!take_notes(listening->names, false, !listening->crowded) && listening->crowded) {
		listening->crowded = false;
		take_notes(listening->names, false, true); /* what came before it waits for notes again */
	}
	tell_readers(listening->names);
	if (listening->paid_until < since)
		listening->paid_until = since;
	listening->paid_until += SHARE * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
	if (listening->crowded)
		pause_before_look(listening);
	else if (!listening->pause)
		loop_listen(listening->source, POLLIN);
}

/* A note has come. It is read after a pause: it is too new yet, and others will follow. */
static void on_notes(void *context, short events)
{
	struct listening *listening = context;

	listening->crowded = listening->paid_until > clock_ns(CLOCK_MONOTONIC);
	loop_listen(listening->source, 0);
	pause_before_look(listening);
}

static void look_at_all(struct names *names)
{
	mappings_look_at_all(names->mappings);
	if (names->data)
		mappings_look_at_all(names->data);
}

/* CPUs have gone online or offline. CPUs that come online are listened to; the processes that exist by then
 * must be read, since their notes were missed. */
static void on_cpus(void *context, const struct cpus *gone)
{
	struct names *names = context;
	struct cpus online;
	bool opened = false;

	if (!notices_online(names->notices, &online))
		return;
	take_notes(names, true, true);
	for (struct listening *one = names->listening; one; one = one->next)
		opened |= sideband_follow(one->sideband, &online, gone);
	if (opened)
		look_at_all(names);
}

/* Finds a listening with all notes that this target needs: of all processes, or of the same command. */
static struct listening *find_listening(const struct names *names, const struct target *target, pid_t child,
					bool data)
{
	for (struct listening *one = names->listening; one; one = one->next)
		if (data && !one->data)
			continue;
		else if (one->of_all || (child && child == one->child && !target->cpus_given))
			return one;
	return NULL;
}

/* Begins to read the notes of an open sideband. */
static struct listening *add_listening(struct names *names, const struct listening *new)
{
	struct listening *listening = xmalloc(sizeof(*listening));

	*listening = *new;
	listening->names = names;
	listening->readers = 1;
	listening->source =
		loop_watch(names->loop, sideband_fd(listening->sideband), POLLIN, on_notes, listening);
	if (!names->listening)
		notices_listen(names->notices, names->loop, names->host->root, on_cpus, names);
	listening->next = names->listening;
	return names->listening = listening;
}

static struct listening *listen_to(struct names *names, const struct target *target, pid_t child, bool data,
				   struct refusal *refusal)
{
	struct listening *known = find_listening(names, target, child, data);
	struct listening new = {.of_all = target->cpus_given, .data = data, .child = child};

	if (known) {
		known->readers++;
		return known;
	}
	if (sideband_open(&new.sideband, target, child, data, names->host, refusal))
		return NULL;
	note("listening to the kernel's notes of mappings: %s", target->cpus_given ? "of all processes"
								: child ? "of the command and its children"
									: "of the target's processes");
	return add_listening(names, &new);
}

/* Listens to notes of code that the kernel makes, if that is possible. Otherwise such code has the names that
 * /proc/kallsyms had when it was read. */
static struct listening *listen_to_kernel(struct names *names)
{
	struct listening new = {0};
	int err;

	if (names->kernel) {
		names->kernel->readers++;
		return names->kernel;
	}
	err = sideband_open_kernel(&new.sideband, names->host);
	if (err) {
		note("no notes of code that the kernel makes: %s", strerror(-err));
		return NULL;
	}
	names->ksymbols.read = take_of_kernel;
	names->ksymbols.context = names;
	return names->kernel = add_listening(names, &new);
}

static void stop_listening(struct listening *listening)
{
	struct names *names = listening->names;
	struct listening **at = &names->listening;

	if (--listening->readers)
		return;
	if (listening == names->kernel)
		names->kernel = NULL;
	if (listening == names->cgroups)
		names->cgroups = NULL;
	while (*at != listening)
		at = &(*at)->next;
	*at = listening->next;
	names->lost += sideband_lost(listening->sideband);
	loop_remove(names->loop, &listening->source);
	loop_remove(names->loop, &listening->pause);
	sideband_close(listening->sideband);
	free(listening);
	if (!names->listening)
		notices_leave(names->notices, names);
}

bool names_follow_cgroups(struct names *names)
{
	struct listening new = {0};

	if (names->cgroups) {
		names->cgroups->readers++;
		return true;
	}
	if (names->host->cgroup_v1[0] || !cgroups_are_all_seen(names->host->cgroups) ||
	    sideband_open_cgroups(&new.sideband, names->host))
		return false;
	names->cgroups = add_listening(names, &new);
	return true;
}

void names_follow_cgroups_no_more(struct names *names)
{
	stop_listening(names->cgroups);
}

void names_take(struct names *names)
{
	take_notes(names, true, true);
}

static __u64 notes_lost(const struct names *names)
{
	__u64 lost = names->lost;

	for (const struct listening *one = names->listening; one; one = one->next)
		lost += sideband_lost(one->sideband);
	return lost;
}

/* --- readers ---------------------------------------------------------------------------------- */

static void look_at_processes(struct mappings *mappings, const struct target *target, pid_t child)
{
	pid_t *pids = NULL;
	size_t nr;

	/* The command executes its program only after all this. */
	if (child)
		mappings_expect(mappings, child);
	if (target->cpus_given)
		mappings_look_at_all(mappings);
	nr = target->cpus_given ? 0 : sideband_processes(target, &pids);
	for (size_t i = 0; i < nr; i++)
		mappings_look(mappings, pids[i]);
	free(pids);
}

static void look_at_targets(struct names *names, const struct target *target, pid_t child)
{
	look_at_processes(names->mappings, target, child);
	if (names->data)
		look_at_processes(names->data, target, child);
	if (names->unwinding)
		unwinding_publish(names->unwinding, true);
}

int names_read(struct reader **result, struct names *names, const struct target *target, pid_t child,
	       unsigned int detail, __u64 interval_ms, struct refusal *refusal)
{
	struct listening *listening = listen_to(names, target, child, detail & CODE_OF_DATA, refusal);
	struct reader *reader;

	if (!listening)
		return -1;
	if (detail & CODE_OF_DATA && !names->data)
		names->data = mappings_of_data();
	look_at_targets(names, target, child);
	reader = xcalloc(1, sizeof(*reader));
	reader->names = names;
	reader->listening = listening;
	if (detail & (CODE_SYMBOL | CODE_LINE))
		reader->kernel = listen_to_kernel(names);
	open_naming(names, detail, interval_ms); /* kallsyms is read when notes come already */
	reader->interval_ms = interval_ms;
	reader->since = clock_ns(CLOCK_MONOTONIC);
	reader->next = names->readers;
	names->readers = *result = reader;
	return 0;
}

void reader_close(struct reader *reader)
{
	struct reader **at;

	if (!reader)
		return;
	at = &reader->names->readers;
	while (*at != reader)
		at = &(*at)->next;
	*at = reader->next;
	codes_release(reader->codes);
	stop_listening(reader->listening);
	if (reader->kernel)
		stop_listening(reader->kernel);
	free(reader);
}

void reader_on_due(struct reader *reader, void (*due)(void *context), void *context)
{
	reader->due = due;
	reader->context = context;
}

void reader_take(struct reader *reader, bool all)
{
	take_notes(reader->names, all, true);
}

bool reader_forks(const struct reader *reader, __u64 *forks)
{
	return sideband_forks(reader->listening->sideband, forks);
}

/* Begins to read what there is since then. Returns since when any reader reads. */
static __u64 read_since(struct reader *reader, __u64 since)
{
	__u64 oldest = reader->since = since;

	for (const struct reader *other = reader->names->readers; other; other = other->next)
		oldest = other->since < oldest ? other->since : oldest;
	return oldest;
}

/* Forgets what no reader needs. */
static void forget_unread(struct names *names, __u64 oldest)
{
	mappings_forget(names->mappings, oldest);
	if (names->data)
		mappings_forget(names->data, oldest);
	ksymbols_forget(&names->ksymbols, oldest);
	if (names->background)
		background_forget(names->background, oldest > FORGOTTEN_NS ? oldest - FORGOTTEN_NS : 0);
}

void reader_named(struct reader *reader, __u64 until)
{
	__u64 oldest = read_since(reader, until);

	codes_since(reader->codes, until);
	if (bytes_of_mappings(reader->names) > MANY_BYTES)
		codes_forget_places(reader->codes);
	forget_unread(reader->names, oldest);
}

static void look_who_is_gone(struct names *names)
{
	mappings_look_who_is_gone(names->mappings);
	if (names->data)
		mappings_look_who_is_gone(names->data);
}

void reader_begin(struct reader *reader, const struct timespec *since)
{
	struct names *names = reader->names;
	__u64 oldest = read_since(reader, timespec_ns(since));

	codes_release(reader->codes);
	reader->codes = NULL;
	reader->timed = false;
	if (notes_lost(names) != names->lost_known)
		look_who_is_gone(names);
	names->lost_known = notes_lost(names);
	forget_unread(names, oldest);
	if (names->notices->socket < 0) /* there are no notices, so CPUs are polled */
		notices_take(names->notices, names);
}

void names_wait_at_most(struct names *names, __u64 ns)
{
	names->most_ns = ns;
}

void reader_hurry_no_more(struct reader *reader)
{
	reader->unhurried = true;
}

struct mappings *reader_mappings(struct reader *reader)
{
	return reader->names->mappings;
}

struct codes *reader_codes_now(struct reader *reader)
{
	struct names *names = reader->names;

	if (!reader->codes)
		reader->codes = codes_new(names->mappings, names->data, &names->ksymbols, names->background,
					  &reader->account, reader->since, 0, 0);
	return reader->codes;
}

/* Begins the time that the interval's names may take. */
static void begin_time(struct reader *reader)
{
	const struct names *names = reader->names;
	__u64 half = reader->interval_ms * 1000000 / 2, now = clock_ns(CLOCK_MONOTONIC);
	__u64 most = names->most_ns && names->most_ns < half ? names->most_ns : half;
	bool hurried = half && (!reader->unhurried || names->most_ns);

	reader->deadline = hurried ? now + half : 0;
	reader->waiting = hurried ? now + most : 0;
	reader->timed = true;
}

struct codes *reader_codes(struct reader *reader)
{
	struct codes *codes = reader_codes_now(reader);

	if (!reader->timed)
		begin_time(reader);
	codes_time(codes, reader->deadline, reader->waiting);
	return codes;
}

struct codes *reader_codes_early(struct reader *reader, __u64 until)
{
	struct codes *codes = reader_codes_now(reader);

	codes_time(codes, until, until);
	return codes;
}

json_t *reader_value(const struct reader *reader)
{
	json_t *value = code_account_value(&reader->account);

	json_object_set_new(value, "notes_lost", json_integer(notes_lost(reader->names)));
	json_object_set_new(value, "mappings_dropped",
			    json_integer(mappings_dropped(reader->names->mappings)));
	return value;
}
