// SPDX-License-Identifier: GPL-2.0-only
#include "host/priority.h"

#include <unistd.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>

/* Nine times the weight of the others: sched_prio_to_weight, kernel/sched/core.c. With -5, three times,
 * samples were still lost, with -10 and -20 none. */
#define NICE_OF_READER -10

/* Changes one priority into the other. One that somebody else has chosen is neither: its flag differs. */
static void change(int nice, __u64 flag, int to_nice, __u64 to_flag)
{
	struct sched_attr attr = {0};

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.sched_policy != SCHED_NORMAL ||
	    attr.sched_nice != nice || (attr.sched_flags & SCHED_FLAG_RESET_ON_FORK) != flag)
		return;
	attr.sched_nice = to_nice;
	attr.sched_flags = (attr.sched_flags & ~(__u64)SCHED_FLAG_RESET_ON_FORK) | to_flag;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

void priority_raise(void)
{
	change(0, 0, NICE_OF_READER, SCHED_FLAG_RESET_ON_FORK);
}

void priority_lower(void)
{
	change(NICE_OF_READER, SCHED_FLAG_RESET_ON_FORK, 0, 0);
}
