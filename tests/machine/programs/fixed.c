/*
 * Reads the three fixed counters by RDPMC before and after 2000 flushed loads,
 * which take 190 cycles each and are four instructions with their loop. Another
 * program (perf stat) must have started the counters.
 */
#include <stdint.h>
#include <stdio.h>

static uint64_t rdpmc(uint32_t index)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
}

int main(void)
{
	static uint64_t word __attribute__((aligned(64)));
	uint64_t before[3];

	for (int k = 0; k < 3; k++)
		before[k] = rdpmc(0x40000000 + k);
	for (int k = 0; k < 2000; k++)
		__asm__ volatile("clflush %0\nmfence\nmov %0, %%rax" : "+m"(word)::"rax", "memory");
	for (int k = 0; k < 3; k++)
		printf("rdpmc %d %llu\n", k,
		       (unsigned long long)(rdpmc(0x40000000 + k) - before[k]));
	return 0;
}
