// SPDX-License-Identifier: GPL-2.0-only
#include "confined/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>

#include "base/array.h"
#include "base/late.h"
#include "naming/message.h"

#define FUNCTIONS(X)                                                                                         \
	X(seccomp_init)                                                                                      \
	X(seccomp_load)                                                                                      \
	X(seccomp_release)                                                                                   \
	X(seccomp_rule_add)                                                                                  \
	X(seccomp_version)

static const char *libseccomp_version(void)
{
	static char text[32];
	const struct scmp_version *version = seccomp_version();

	snprintf(text, sizeof(text), "%u.%u.%u", version->major, version->minor, version->micro);
	return text;
}

DEFINE_LATE(libseccomp, LIBSECCOMP_SONAME, "libseccomp2", FUNCTIONS, libseccomp_version);

/* Other system calls fail with EPERM instead of ending the worker, because libraries try calls that they can
 * do without. */
static const int allowed[] = {
	SCMP_SYS(read),		SCMP_SYS(pread64),     SCMP_SYS(lseek),		SCMP_SYS(fstat),
	SCMP_SYS(close),	SCMP_SYS(sendmsg),     SCMP_SYS(recvmsg),	SCMP_SYS(write),
	SCMP_SYS(brk),		SCMP_SYS(munmap),      SCMP_SYS(mremap),	SCMP_SYS(madvise),
	SCMP_SYS(futex),	SCMP_SYS(setitimer),   SCMP_SYS(clock_gettime), SCMP_SYS(getrandom),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(exit),	       SCMP_SYS(exit_group),	SCMP_SYS(restart_syscall),
/* fstat(3) of older glibc uses it. It also takes paths, which gives away no more than stat(2) does. */
#if !__GLIBC_PREREQ(2, 39)
	SCMP_SYS(newfstatat),
#endif
#ifdef __SANITIZE_ADDRESS__
	SCMP_SYS(sigaltstack),	SCMP_SYS(sched_yield), SCMP_SYS(gettid),	SCMP_SYS(getpid),
#endif
};

/* Only some commands: with F_SETOWN and F_SETSIG, the kernel would send signals to any process of the same
 * user. */
static int allow_fcntl(scmp_filter_ctx filter)
{
	static const int commands[] = {F_GETFD, F_GETFL, F_ADD_SEALS, F_DUPFD_CLOEXEC};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		err |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
					SCMP_A1(SCMP_CMP_EQ, commands[i], 0));
	return err;
}

/* Allows anonymous memory, and files as they are (image_map()), but nothing executable or shared. */
static int allow_memory(scmp_filter_ctx filter)
{
	int err = 0;

	err |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
				SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
				SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));
	err |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, SCMP_A2(SCMP_CMP_EQ, PROT_READ),
				SCMP_A3(SCMP_CMP_EQ, MAP_PRIVATE));
	err |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	err |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(memfd_create), 1,
				SCMP_A1(SCMP_CMP_EQ, MEMORY_FLAGS, 0));
	return err;
}

const char *filter_load_library(void)
{
	return late_load(&libseccomp) ? NEVER_LIBRARY : NULL;
}

int filter_system_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = 0;

	if (!filter)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		err |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	err |= allow_fcntl(filter);
	err |= allow_memory(filter);
	err |= seccomp_load(filter);
	seccomp_release(filter);
	return err;
}
