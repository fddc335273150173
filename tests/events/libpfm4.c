// SPDX-License-Identifier: GPL-2.0-only
/*
 * libpfm4's answers. `libpfm4 list PMU` prints its events as EVENT or EVENT:UMASK, one a line. `libpfm4
 * encode` reads events, one a line, and prints for each config, config1, exclude_user, exclude_kernel,
 * precise_ip, pinned, freq and sample_period of the attr that it makes, or "refused".
 * LIBPFM_ENCODE_INACTIVE=1 makes it answer for absent CPUs.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h> /* its perf_event.h calls syscall() */

#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>

static void list_umasks(int event, const pfm_event_info_t *info)
{
	for (int i = 0; i < info->nattrs; i++) {
		pfm_event_attr_info_t attribute = {.size = sizeof(attribute)};

		if (pfm_get_event_attr_info(event, i, PFM_OS_NONE, &attribute) == PFM_SUCCESS &&
		    attribute.type == PFM_ATTR_UMASK)
			printf("%s:%s\n", info->name, attribute.name);
	}
}

static void list_events(const char *wanted)
{
	int pmu;

	pfm_for_all_pmus(pmu)
	{
		pfm_pmu_info_t info = {.size = sizeof(info)};

		if (pfm_get_pmu_info(pmu, &info) != PFM_SUCCESS || strcmp(info.name, wanted))
			continue;
		for (int i = info.first_event; i != -1; i = pfm_get_event_next(i)) {
			pfm_event_info_t event = {.size = sizeof(event)};

			if (pfm_get_event_info(i, PFM_OS_NONE, &event) != PFM_SUCCESS)
				continue;
			puts(event.name);
			list_umasks(i, &event);
		}
	}
}

static void encode(const char *event)
{
	struct perf_event_attr attr = {0};
	pfm_perf_encode_arg_t argument = {.attr = &attr, .size = sizeof(argument)};

	if (pfm_get_os_event_encoding(event, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT_EXT, &argument))
		puts("refused");
	else
		printf("%llu %llu %d %d %d %d %d %llu\n", (unsigned long long)attr.config,
		       (unsigned long long)attr.config1, attr.exclude_user, attr.exclude_kernel,
		       attr.precise_ip, attr.pinned, attr.freq, (unsigned long long)attr.sample_period);
}

int main(int argc, char **argv)
{
	char line[512];

	if (argc < 2 || pfm_initialize() != PFM_SUCCESS)
		return 1;
	if (argc == 3 && !strcmp(argv[1], "list"))
		list_events(argv[2]);
	else
		while (fgets(line, sizeof(line), stdin)) {
			line[strcspn(line, "\n")] = '\0';
			encode(line);
		}
	return 0;
}
