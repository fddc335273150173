// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens events one after the other and reads registers while each is enabled.
 *
 * usage: opened CPU REG...     stdin: a line an event, the bytes of its perf_event_attr in hex
 * Prints a line for each: the errno of opening it, or "0" and the registers' values. Needs
 * /dev/cpu/CPU/msr.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>

static void parse(const char *line, struct perf_event_attr *attr)
{
	unsigned char *byte = (unsigned char *)attr;
	unsigned int value;

	memset(attr, 0, sizeof(*attr));
	for (size_t i = 0; i < sizeof(*attr) && sscanf(line + 2 * i, "%2x", &value) == 1; i++)
		byte[i] = value;
}

static void print_registers(int msr, int nr, char **registers)
{
	for (int i = 0; i < nr; i++) {
		uint64_t value = 0;

		if (pread(msr, &value, sizeof(value), strtoul(registers[i], NULL, 0)) != sizeof(value))
			exit(1);
		printf(" %#llx", (unsigned long long)value);
	}
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr;
	char path[32], line[1024];
	int cpu = atoi(argv[1]), msr;

	snprintf(path, sizeof(path), "/dev/cpu/%d/msr", cpu);
	msr = open(path, O_RDONLY);
	if (msr < 0)
		return perror(path), 1;
	while (fgets(line, sizeof(line), stdin)) {
		int fd;

		parse(line, &attr);
		fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		printf("%d", fd < 0 ? errno : 0);
		if (fd >= 0) {
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
			print_registers(msr, argc - 2, argv + 2);
			close(fd);
		}
		printf("\n");
	}
	return 0;
}
