/*
 * Prints CPUID of every processor, as `cpuid -r` does, with its number in front:
 *     0 0x0000000b 0x01: eax=0x00000004 ebx=0x00000008 ecx=0x00000201 edx=0x00000000
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static void print(int cpu, unsigned leaf, unsigned sub)
{
	unsigned eax, ebx, ecx, edx;

	__cpuid_count(leaf, sub, eax, ebx, ecx, edx);
	printf("%d 0x%08x 0x%02x: eax=0x%08x ebx=0x%08x ecx=0x%08x edx=0x%08x\n", cpu, leaf, sub, eax, ebx,
	       ecx, edx);
}

int main(void)
{
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			return 1;
		print(cpu, 1, 0);
		print(cpu, 2, 0);
		for (unsigned sub = 0; sub < 4; sub++)
			print(cpu, 4, sub);
		print(cpu, 0xa, 0);
		for (unsigned sub = 0; sub < 3; sub++)
			print(cpu, 0xb, sub);
	}
	return 0;
}
