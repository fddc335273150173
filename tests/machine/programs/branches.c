/*
 * One branch of each kind that LBR_SELECT distinguishes, between two writes to
 * IA32_DEBUGCTL that switch the LBR on and off. Needs /dev/cpu/0/msr.
 *
 * usage: branches SELECT     prints the LBR, oldest entry first, a line for each:
 *                            source, target, predicted or mispredicted
 *
 * While the LBR is on there are, in this order:
 *   enter     the far return from the kernel, whose address is not known here
 *   jcc       a conditional jump that is taken
 *   rel_call  a near relative call to leaf, and ret, leaf's near return
 *   ind_call  a near indirect call to leaf, and ret again
 *   ind_jmp   a near indirect jump
 *   rel_jmp   a near relative jump
 *   leave     the system call that switches the LBR off, a far branch to ring 0
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LBR_SELECT = 0x1C8, TOS = 0x1C9, DEBUGCTL = 0x1D9, FROM = 0x680, TO = 0x6C0, N = 16 };

extern char enter[], jcc[], rel_call[], ind_call[], ind_jmp[], rel_jmp[], leave_[], leaf[], ret[],
	after_jcc[], after_ind_jmp[], after_rel_jmp[];
static const struct {
	const char *name;
	char *at;
} places[] = {
	{"enter", enter},
	{"jcc", jcc},
	{"rel_call", rel_call},
	{"ind_call", ind_call},
	{"ind_jmp", ind_jmp},
	{"rel_jmp", rel_jmp},
	{"leave", leave_},
	{"leaf", leaf},
	{"ret", ret},
	{"after_jcc", after_jcc},
	{"after_ind_jmp", after_ind_jmp},
	{"after_rel_jmp", after_rel_jmp},
};

static const char *name_of(uint64_t address)
{
	static char text[2][32];
	static int turn;

	if (address >> 63)
		return "kernel";
	for (unsigned k = 0; k < sizeof(places) / sizeof(*places); k++)
		if ((uint64_t)places[k].at == address)
			return places[k].name;
	turn ^= 1;
	snprintf(text[turn], sizeof(text[turn]), "%#llx", (unsigned long long)address);
	return text[turn];
}

static uint64_t value(int fd, uint32_t reg)
{
	uint64_t v = 0;

	pread(fd, &v, 8, reg);
	return v;
}

/* pwrite(fd, &on, 8, DEBUGCTL), the branches, pwrite(fd, &off, 8, DEBUGCTL). */
static void branch_all(int fd)
{
	static const uint64_t on = 1, off = 0;
	register long offset __asm__("r10") = DEBUGCTL;

	__asm__ volatile("syscall\n"
			 "enter: xor %%ebx, %%ebx\n"
			 "jcc: jz after_jcc\n"
			 "nop\n"
			 "after_jcc: nop\n"
			 "rel_call: call leaf\n"
			 "lea leaf(%%rip), %%rbx\n"
			 "ind_call: call *%%rbx\n"
			 "lea after_ind_jmp(%%rip), %%rbx\n"
			 "ind_jmp: jmp *%%rbx\n"
			 "leaf: nop\n"
			 "ret: ret\n"
			 "after_ind_jmp: nop\n"
			 "rel_jmp: jmp after_rel_jmp\n"
			 "nop\n"
			 "after_rel_jmp: mov $18, %%eax\n"
			 "mov %1, %%rsi\n"
			 "leave_: syscall\n"
			 :
			 : "a"(18), "r"(&off), "D"(fd), "S"(&on), "d"(8L), "r"(offset)
			 : "rbx", "rcx", "r11", "memory", "cc");
}

int main(int argc, char **argv)
{
	uint64_t select = argc > 1 ? strtoull(argv[1], NULL, 0) : 0, tos;
	int fd = open("/dev/cpu/0/msr", O_RDWR);

	if (fd < 0)
		return perror("msr"), 1;
	pwrite(fd, &select, 8, LBR_SELECT);
	for (int k = 0; k < N; k++) {
		uint64_t zero = 0;

		pwrite(fd, &zero, 8, FROM + k);
		pwrite(fd, &zero, 8, TO + k);
	}
	branch_all(fd);
	tos = value(fd, TOS);
	for (int k = 1; k <= N; k++) {
		uint64_t from = value(fd, FROM + (tos + k) % N), to = value(fd, TO + (tos + k) % N);

		if (!to)
			continue;
		printf("%s %s %s\n", name_of((int64_t)(from << 1) >> 1), name_of(to),
		       from >> 63 ? "mispredicted" : "predicted");
	}
	return 0;
}
