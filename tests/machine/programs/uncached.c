/*
 * Loads from uncached memory: the VGA window, through /dev/mem.
 *
 *: loads = 10000
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	int fd = open("/dev/mem", O_RDONLY | O_SYNC);
	char *window = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0xA0000);
	long n = 10000;

	if (window == MAP_FAILED)
		return 1;
	__asm__ volatile(".globl uncached_site\n"
			 "1: uncached_site: mov (%1), %%rax\n"
			 "dec %0\njnz 1b"
			 : "+r"(n)
			 : "r"(window)
			 : "rax", "memory", "cc");
	return 0;
}
