// SPDX-License-Identifier: GPL-2.0-only
#include "versions.h"

#include <stdarg.h>
#include <stdio.h>
#include <bpf/libbpf.h>
#include <elfutils/libdwfl.h>
#include <jansson.h>
#include <lzma.h>
#include <protobuf-c/protobuf-c.h>
#include <zlib.h>

#include "host/host.h"
#include "host/kernel.h"

static void __attribute__((format(printf, 2, 3))) print_line(const char *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("%-14s", name);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
}

void versions_print(void)
{
	static const char *const options[] = {"PERF_EVENTS", "BPF_SYSCALL", "BPF_JIT", "DEBUG_INFO_BTF",
					      "CGROUP_PERF", "KALLSYMS",    "X86_MSR"};
	struct host host = {0};
	char name[64];

	print_line("schema", "%s", SCHEMA_VERSION);
	print_line("libbpf", "%s", libbpf_version_string());
	print_line("libperf", "%s", LIBPERF_VERSION);
	print_line("libjansson", "%s", jansson_version_str());
	print_line("libdw", "%s", dwfl_version(NULL));
	print_line("zlib", "%s", zlibVersion());
	print_line("protobuf-c", "%s", protobuf_c_version());
	print_line("liblzma", "%s", lzma_version_string());
	if (host_gather(&host, ""))
		return;
	print_line("kernel", "%s, %s BTF, perf_event_paranoid %d, lockdown %s", host.release,
		   host.btf ? "with" : "without", host.perf_event_paranoid,
		   host.lockdown[0] ? host.lockdown : "not built in");
	printf("%-14s", "built with");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
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
