// SPDX-License-Identifier: GPL-2.0-only
#include "command/versions.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <jansson.h>
#include <lzma.h>
#include <protobuf-c/protobuf-c.h>
#include <zlib.h>

#include "base/array.h"
#include "base/hex.h"
#include "base/late.h"
#include "facility/diagnosis.h"
#include "host/host.h"
#include "host/kernel.h"

static const char *libperf_version(void)
{
	return LIBPERF_VERSION;
}

static const char *libdw_version(void)
{
	return dwfl_version(NULL);
}

/* The libraries that the program is linked with. */
static const struct library {
	const char *name;
	const char *(*version)(void);
} libraries[] = {
	{"libbpf", libbpf_version_string}, {"libperf", libperf_version}, {"libjansson", jansson_version_str},
	{"libdw", libdw_version},	   {"zlib", zlibVersion},	 {"protobuf-c", protobuf_c_version},
	{"liblzma", lzma_version_string},
};

#define BUILD_ID_MAX 64 /* bytes */

/* The build id as hex; "" if the program was linked without one. */
static void read_build_id(char text[2 * BUILD_ID_MAX + 1])
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const void *bits = NULL;
	ssize_t size;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	size = elf ? dwelf_elf_gnu_build_id(elf, &bits) : 0;
	hex_text(text, bits, size < 0 ? 0 : size < BUILD_ID_MAX ? size : BUILD_ID_MAX);
	elf_end(elf);
	close(fd);
}

/* --- lines ------------------------------------------------------------------------------------ */

static void __attribute__((format(printf, 2, 3))) print_line(const char *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("%-14s", name);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
}

static void print_late(struct late *library)
{
	if (!library->soname)
		print_line("built without", "%s", library->name);
	else
		print_line(library->name, "%s", late_load(library) ? "not installed" : library->version());
}

void versions_print(void)
{
	static const char *const options[] = {"PERF_EVENTS", "BPF_SYSCALL", "BPF_JIT", "DEBUG_INFO_BTF",
					      "CGROUP_PERF", "KALLSYMS",    "X86_MSR"};
	struct host host = {0};
	char name[64], build_id[2 * BUILD_ID_MAX + 1];

	read_build_id(build_id);
	print_line("schema", "%s", SCHEMA_VERSION);
	print_line("build id", "%s", build_id[0] ? build_id : "none");
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		print_line(libraries[i].name, "%s", libraries[i].version());
	for (struct late *const *at = __start_late; at < __stop_late; at++)
		print_late(*at);
	if (host_gather(&host, ""))
		return;
	print_line("kernel", "%s, %s BTF, perf_event_paranoid %d, lockdown %s", host.release,
		   host.btf ? "with" : "without", host.perf_event_paranoid,
		   host.lockdown[0] ? host.lockdown : "not built in");
	printf("%-14s", "built with");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		char built;

		snprintf(name, sizeof(name), "CONFIG_%s", options[i]);
		built = kernel_config(&host, name);
		printf("%s%s=%c", i ? " " : "", options[i], built ? built : '?');
	}
	host_read_pmus(&host);
	printf("\n%-14s", "PMUs");
	for (const struct pmu *pmu = host.pmus; pmu; pmu = pmu->next)
		printf("%s%s", pmu == host.pmus ? "" : ", ", pmu->name);
	putchar('\n');
	host_release(&host);
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* The members of doctor's kernel record, without its type. */
static json_t *kernel_value(void)
{
	struct host host = {0};
	json_t *kernel;

	if (host_gather(&host, ""))
		return json_null();
	kernel = kernel_record(&host);
	json_object_del(kernel, "type");
	json_object_set_new(kernel, "lockdown",
			    json_string(host.lockdown[0] ? host.lockdown : "not built in"));
	host_release(&host);
	return kernel;
}

void versions_print_json(void)
{
	char build_id[2 * BUILD_ID_MAX + 1];
	json_t *known = json_object(), *without = json_array(), *all;

	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		json_object_set_new(known, libraries[i].name, json_string(libraries[i].version()));
	for (struct late *const *at = __start_late; at < __stop_late; at++) {
		if (!(*at)->soname)
			json_array_append_new(without, json_string((*at)->name));
		else if (!late_load(*at))
			json_object_set_new(known, (*at)->name, json_string((*at)->version()));
	}
	read_build_id(build_id);
	all = json_pack("{s:s, s:s, s:s, s:s*, s:o, s:o, s:o}", "type", "version", "schema_version",
			SCHEMA_VERSION, "version", NHMTAP_VERSION, "build_id", build_id[0] ? build_id : NULL,
			"libraries", known, "built_without", without, "kernel", kernel_value());
	json_dumpf(all, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(all);
}
