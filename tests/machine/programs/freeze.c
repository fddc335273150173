/*
 * Lets a counter overflow without the kernel's driver, with its interrupt masked.
 *
 * usage: freeze DEBUGCTL      Needs /dev/cpu/0/msr and the APIC through /dev/mem.
 *
 * Masks the performance entry of the local vector table, so that only the
 * processor acts on the overflow; programs counter 1 to overflow on
 * its 1000th instruction at user level, interrupt requested; runs 100000
 * instructions; prints the registers afterwards.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int fd;

static void set(uint32_t reg, uint64_t v)
{
	if (pwrite(fd, &v, 8, reg) != 8)
		perror("wrmsr");
}

static void show(const char *name, uint32_t reg)
{
	uint64_t v = 0;

	pread(fd, &v, 8, reg);
	printf("%s %#llx\n", name, (unsigned long long)v);
}

int main(int argc, char **argv)
{
	uint64_t debugctl = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	int mem = open("/dev/mem", O_RDWR | O_SYNC);
	volatile uint32_t *apic =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0xFEE00000);
	uint32_t lvt;
	long n = 50000;

	fd = open("/dev/cpu/0/msr", O_RDWR);
	if (fd < 0 || apic == MAP_FAILED)
		return perror("freeze"), 1;
	lvt = apic[0x340 / 4];
	apic[0x340 / 4] = lvt | 1 << 16;
	set(0x390, 0xF);
	set(0x187, 0x5100C0); /* EN, INT, USR, INST_RETIRED.ANY_P with umask 0 */
	set(0xC2, -1000ull);
	set(0x1D9, debugctl);
	set(0x38F, 2);
	__asm__ volatile("1: dec %0\njnz 1b" : "+r"(n)::"cc");
	show("GLOBAL_CTRL", 0x38F);
	show("DEBUGCTL", 0x1D9);
	show("GLOBAL_STATUS", 0x38E);
	set(0x38F, 0);
	show("PMC1", 0xC2);
	set(0x390, 2);
	show("cleared", 0x38E);
	set(0x187, 0);
	set(0x1D9, 0);
	apic[0x340 / 4] = lvt;
	return 0;
}
