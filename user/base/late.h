/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Libraries that few runs need, and that depend on thirty others. They are loaded when they are first needed,
 * so that other runs start without them, and the program can be built without them (make WITHOUT=curl). One
 * file calls such a library, and registers it. Once it is loaded, its functions are called by their own
 * names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/refusal.h"

struct late_function {
	const char *name;
	void **address;
};

struct late {
	const char *name;    /* "libcurl" */
	const char *soname;  /* NULL: the program was built without it */
	const char *package; /* the Debian package that has it */
	const struct late_function *functions;
	size_t nr;
	const char *(*version)(void); /* to be called once it is loaded */
	bool loaded;
};

/* The linker defines these for a section whose name is an identifier. */
extern struct late *const __start_late[], *const __stop_late[];

#define REGISTER_LATE(item)                                                                                  \
	static struct late *const registered_##item __attribute__((section("late"), used)) = &(item)

/* Defines a function of this name that jumps to the library's function. The arguments stay in their
 * registers, so they need not be known here. */
#define LATE_FUNCTION(name)                                                                                  \
	__attribute__((visibility("hidden"))) void *late_##name;                                             \
	__asm__(".pushsection .text\n"                                                                       \
		".globl " #name "\n"                                                                         \
		".hidden " #name "\n"                                                                        \
		".type " #name ", @function\n" #name ": jmp *late_" #name "(%rip)\n"                         \
		".size " #name ", . - " #name "\n"                                                           \
		".popsection");

#define LATE_ROW(name) {#name, &late_##name},

/* Defines and registers `library`. `functions` is a list, X(name) for each function that is called; if one is
 * missing there, the linker reports it. */
#define DEFINE_LATE(library, library_soname, library_package, list, library_version)                         \
	list(LATE_FUNCTION) static const struct late_function functions_of_##library[] = {list(LATE_ROW)};   \
	static struct late library = {                                                                       \
		.name = #library,                                                                            \
		.soname = library_soname,                                                                    \
		.package = library_package,                                                                  \
		.functions = functions_of_##library,                                                         \
		.nr = ARRAY_SIZE(functions_of_##library),                                                    \
		.version = library_version,                                                                  \
	};                                                                                                   \
	REGISTER_LATE(library)

/* The same, for the file that takes the place of the one that calls it. */
#define DEFINE_LATE_WITHOUT(library)                                                                         \
	static struct late library = {.name = #library};                                                     \
	REGISTER_LATE(library)

/* Loads the library, unless it is already loaded. To be called on the main thread only. Returns NULL, or why
 * it can't be loaded, valid until the next call of dlerror(3). */
const char *late_load(struct late *library);

/* Loads the library that `option` with this value needs. Returns 0, or -1 with the refusal. */
int late_need(struct late *library, const char *option, const char *value, struct refusal *refusal);
