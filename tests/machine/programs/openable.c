/*
 * Tries to open events on itself and prints what the kernel answers.
 *
 * Reads lines of CONFIG CONFIG1 PRECISE, numbers in hexadecimal, and writes a line for each: 0 if the
 * event opens at user level, else the error number. Precise events get a period, as PEBS needs one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	unsigned long long config, config1;
	unsigned int precise;

	while (scanf("%llx %llx %x", &config, &config1, &precise) == 3) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_RAW,
			.size = sizeof(attr),
			.config = config,
			.config1 = config1,
			.precise_ip = precise,
			.sample_period = precise ? 100003 : 0,
			.exclude_kernel = 1,
			.exclude_guest = 1,
			.disabled = 1,
		};
		int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

		printf("%d\n", fd < 0 ? errno : 0);
		if (fd >= 0)
			close(fd);
	}
	return 0;
}
