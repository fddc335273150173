// SPDX-License-Identifier: GPL-2.0-only
/* Only for builds with gcc's ASan. A short run under it is mostly its start and its search for leaks, which
 * are spared here what they find nothing in. That is a third of the time that `nhmtap --version` takes. */
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* What the search for leaks need not read because it owns nothing, by address. */
static struct spared_span {
	uintptr_t begin, end;
} spared[2048];
static size_t nr_spared;

UNCHECKED static void spare(const void *what, size_t size)
{
	uintptr_t begin = (uintptr_t)what, end = begin + size;
	size_t at = nr_spared;

	while (at && spared[at - 1].begin > begin)
		at--;
	if (at && spared[at - 1].end == begin) {
		spared[at - 1].end = end;
	} else if (at < nr_spared && spared[at].begin == end) {
		spared[at].begin = begin;
	} else if (nr_spared < sizeof(spared) / sizeof(*spared)) {
		for (size_t i = nr_spared++; i > at; i--)
			spared[i] = spared[i - 1];
		spared[at] = (struct spared_span){begin, end};
	}
}

UNCHECKED static bool is_of_ubsan(const struct described *global)
{
	const char *begin = "*.Lubsan", *name = global->name;

	while (*begin && *begin == *name) { /* ASan's strncmp() looks first if it may read all of both */
		begin++;
		name++;
	}
	return !*begin;
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
	spare(all, nr * sizeof(*all));
	for (from = 0; from < nr; from = to + 1) {
		for (to = from; to < nr && !is_of_ubsan(&all[to]);)
			to++;
		if (to > from)
			next(all + from, to - from);
		if (to < nr)
			spare(all[to].begin, all[to].with_red_zone);
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

static ElfW(Phdr) kept[sizeof(spared) / sizeof(*spared) + 16];
static size_t nr_kept;

UNCHECKED static void keep(const ElfW(Phdr) * segment, ElfW(Addr) begin, ElfW(Addr) end)
{
	if (nr_kept == sizeof(kept) / sizeof(*kept))
		return;
	kept[nr_kept] = *segment;
	kept[nr_kept].p_vaddr = begin;
	kept[nr_kept++].p_memsz = end - begin;
}

/* Keeps of a segment what is between the spared spans. */
UNCHECKED static void keep_between(const ElfW(Phdr) * segment, ElfW(Addr) moved)
{
	ElfW(Addr) at = segment->p_vaddr, end = at + segment->p_memsz;

	for (size_t i = 0; i < nr_spared; i++) {
		if (spared[i].begin - moved < at || spared[i].end - moved > end)
			continue;
		keep(segment, at, spared[i].begin - moved);
		at = spared[i].end - moved;
	}
	keep(segment, at, end);
}

/* The search for leaks reads all that the program and libraries may write, to find what still has an owner.
 * Of the program's own data, 97 % are UBSan's variables and what gcc notes about variables. ASan's own
 * library has 5 MB, almost all untouched, and owns nothing of the program's. The loader's lock is held here.
 */
UNCHECKED static int without_spared(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct seen_segments *segments = context;
	bool is_asan = strstr(info->dlpi_name, "/libasan.so");
	struct dl_phdr_info less = *info;

	if (*info->dlpi_name && !is_asan)
		return segments->see(info, size, segments->context);
	nr_kept = 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
			keep(segment, segment->p_vaddr, segment->p_vaddr + segment->p_memsz);
		else if (!is_asan)
			keep_between(segment, info->dlpi_addr);
	}
	less.dlpi_phdr = kept;
	less.dlpi_phnum = nr_kept;
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
	return next(without_spared, &segments);
}
#endif
