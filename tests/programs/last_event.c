// SPDX-License-Identifier: GPL-2.0-only
/* last_event FOLDER: counts the cgroup FOLDER, which it must be in, on the CPU that it is bound to, and
 * disables the event while it runs there itself. If that was the CPU's last event of a cgroup, Linux 6.18
 * lets the cgroup's clock go on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.disabled = 1,
	};
	int folder = argc > 1 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
	int fd = syscall(SYS_perf_event_open, &attr, folder, sched_getcpu(), -1, PERF_FLAG_PID_CGROUP);

	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return 1;
	usleep(1000); /* the kernel starts the cgroup's clock when it switches to one of its tasks */
	return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) ? 1 : 0;
}
