// SPDX-License-Identifier: GPL-2.0-only
/* Prints what a confined worker may still do: one line per attempt, its name and errno (0:
 * success). */
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "../../user/confined/served.c"

static char text[4096];
static size_t length;

static void tell(const char *name, long result)
{
	int error = result < 0 ? errno : 0;

	length += snprintf(text + length, sizeof(text) - length, "%s %d\n", name, error);
}

int main(void)
{
	struct iovec part = {text, sizeof(text)};
	char *const no_arguments[] = {NULL};
	void *memory;

	if (confine(1UL << 30))
		return 1;
	tell("open", syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY));
	tell("open2", syscall(SYS_open, "/dev/null", O_RDONLY));
	tell("execve", execve("/bin/true", no_arguments, no_arguments));
	tell("fork", syscall(SYS_fork));
	tell("clone", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	tell("clone3", syscall(SYS_clone3, NULL, 0));
	tell("socket", socket(AF_UNIX, SOCK_STREAM, 0));
	tell("ptrace", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
	tell("kill", kill(1, 0));
	tell("read_of_others", process_vm_readv(getppid(), &part, 1, &part, 1, 0));
	tell("prctl", prctl(PR_SET_DUMPABLE, 1));
	tell("signal_of_a_file", fcntl(STDIN_FILENO, F_SETSIG, SIGKILL));
	tell("owner_of_a_file", fcntl(STDIN_FILENO, F_SETOWN, getppid()));
	tell("flags_of_a_file", fcntl(STDIN_FILENO, F_SETFL, O_ASYNC));
	tell("network", socket(AF_INET, SOCK_STREAM, 0));
	tell("room", prlimit(0, RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}, NULL));
	tell("unlink", unlink("/nowhere"));
	tell("bpf", syscall(SYS_bpf, 0, NULL, 0));
	tell("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0));
	tell("io_uring", syscall(SYS_io_uring_setup, 1, NULL));
	memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tell("code", memory == MAP_FAILED ? -1 : 0);
	memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 0, 0);
	tell("file_in_memory", memory == MAP_FAILED ? -1 : 0);
	memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, 0, 0);
	tell("shared_file", memory == MAP_FAILED ? -1 : 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0, 0);
	tell("file_to_write", memory == MAP_FAILED ? -1 : 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, 0, 0);
	tell("file_to_code", memory == MAP_FAILED ? -1 : 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tell("memory", memory == MAP_FAILED ? -1 : 0);
	tell("memory_to_code", mprotect(memory, 4096, PROT_READ | PROT_EXEC));
	tell("huge_memory", syscall(SYS_memfd_create, "x", MFD_HUGETLB | MFD_ALLOW_SEALING));
	tell("read", pread(STDIN_FILENO, text + length, 1, 0));
	/* Skip the exit handlers: a confined process is not allowed what sanitizers do there. */
	_exit(write(STDOUT_FILENO, text, length) != (ssize_t)length);
}
