// SPDX-License-Identifier: GPL-2.0-only
/* Only for builds with gcc's ASan. A short run under it is mostly its start and its search for leaks, which
 * are spared here what they find nothing in. That is a fifth of the time that `nhmtap --version` takes. */
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* They run before ASan's own start. */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))

/* What gcc notes about a global variable: the interface between it and its runtime. */
struct described {
	const void *begin;
	size_t size, with_red_zone;
	const char *name, *module;
	size_t has_dynamic_init;
	const void *place;
	size_t odr_indicator;
};

void __asan_register_globals(void *globals, long nr);
void __asan_unregister_globals(void *globals, long nr);

UNCHECKED static bool is_of_ubsan(const struct described *global)
{
	return !strncmp(global->name, "*.Lubsan", strlen("*.Lubsan"));
}

/* Three quarters of the variables are what UBSan says at one of its checks. No code of the program has their
 * addresses, so none can read or write beyond them. */
UNCHECKED void __asan_register_globals(void *globals, long nr)
{
	static void (*next)(void *globals, long nr);
	struct described *all = globals;
	long from, to;

	if (!next)
		next = (void (*)(void *, long))dlsym(RTLD_NEXT, "__asan_register_globals");
	for (from = 0; from < nr; from = to + 1) {
		for (to = from; to < nr && !is_of_ubsan(&all[to]);)
			to++;
		if (to > from)
			next(all + from, to - from);
	}
}

/* The process ends. Nothing takes the variables' places, since no library that is unloaded is built so: after
 * a dlclose() of one, ASan would still refuse what else is put there. */
UNCHECKED void __asan_unregister_globals(void *globals, long nr)
{
}

struct seen_segments {
	int (*see)(struct dl_phdr_info *info, size_t size, void *context);
	void *context;
};

/* The search for leaks reads all that libraries may write, to find what still has an owner. ASan's own
 * library has 5 MB of that, almost all untouched, and owns nothing of the program's. */
UNCHECKED static int without_asan(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct seen_segments *segments = context;
	struct dl_phdr_info less = *info;
	ElfW(Phdr) kept[16];

	if (!strstr(info->dlpi_name, "/libasan.so") || info->dlpi_phnum > sizeof(kept) / sizeof(*kept))
		return segments->see(info, size, segments->context);
	less.dlpi_phdr = kept;
	less.dlpi_phnum = 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_W))
			kept[less.dlpi_phnum++] = info->dlpi_phdr[i];
	return segments->see(&less, size, segments->context);
}

UNCHECKED int dl_iterate_phdr(int (*see)(struct dl_phdr_info *info, size_t size, void *context),
			      void *context)
{
	static int (*next)(int (*see)(struct dl_phdr_info * info, size_t size, void *context), void *context);
	struct seen_segments segments = {.see = see, .context = context};

	if (!next)
		next = (int (*)(int (*)(struct dl_phdr_info *, size_t, void *), void *))dlsym(
			RTLD_NEXT, "dl_iterate_phdr");
	return next(without_asan, &segments);
}
#endif
