// SPDX-License-Identifier: GPL-2.0-only
/* denied CALL ERRNO COMMAND…: runs COMMAND under a seccomp filter like those of container runtimes.
 * The system call CALL (perf_event_open, bpf) fails with ERRNO (EPERM, ENOSYS). */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int call = argc > 3 && !strcmp(argv[1], "bpf") ? SYS_bpf : SYS_perf_event_open;
	int error = argc > 3 && !strcmp(argv[2], "ENOSYS") ? ENOSYS : EPERM;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (argc < 4 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 99;
	execv(argv[3], argv + 3);
	return 99;
}
