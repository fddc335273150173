// SPDX-License-Identifier: GPL-2.0-only
/* To be preloaded: the event of switches between cgroups is refused, as by Linux before 5.13. */
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>

long syscall(long number, ...)
{
	register long r10 __asm__("r10");
	register long r8 __asm__("r8");
	register long r9 __asm__("r9");
	long a, b, c, result;
	va_list arguments;

	va_start(arguments, number);
	a = va_arg(arguments, long);
	b = va_arg(arguments, long);
	c = va_arg(arguments, long);
	r10 = va_arg(arguments, long);
	r8 = va_arg(arguments, long);
	r9 = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_perf_event_open && a) {
		const struct perf_event_attr *attr = (const struct perf_event_attr *)a;

		if (attr->type == PERF_TYPE_SOFTWARE && attr->config >= PERF_COUNT_SW_CGROUP_SWITCHES) {
			errno = ENOENT; /* perf_swevent_init(), kernel/events/core.c */
			return -1;
		}
	}
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (result >= 0 || result < -4095)
		return result;
	errno = -result;
	return -1;
}
