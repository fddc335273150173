/*
 * Reads and writes model-specific registers without the kernel's driver, one after the other.
 *
 * usage: msr CPU STEP...      steps: REG (read), REG=VALUE (write), !PROGRAM (run
 *                             `PROGRAM` through sh and wait), @NUMBER (read by RDPMC, on
 *                             whichever CPU this runs; needs CR4.PCE)
 * A line for each: "REG VALUE", "REG VALUE ok" or "REG VALUE fault"; "@NUMBER VALUE".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t rdpmc(uint32_t number)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
	return low | (uint64_t)high << 32;
}

int main(int argc, char **argv)
{
	char path[32];
	int fd;

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "/dev/cpu/%s/msr", argv[1]);
	fd = open(path, O_RDWR);
	if (fd < 0)
		return perror(path), 1;
	for (int k = 2; k < argc; k++) {
		char *value = strchr(argv[k], '=');
		uint32_t reg = strtoul(argv[k], NULL, 0);
		uint64_t v = value ? strtoull(value + 1, NULL, 0) : 0;
		ssize_t n;

		if (argv[k][0] == '!') {
			fflush(stdout);
			if (system(argv[k] + 1))
				return 1;
			continue;
		}
		if (argv[k][0] == '@') {
			printf("%s %#llx\n", argv[k],
			       (unsigned long long)rdpmc(strtoul(argv[k] + 1, NULL, 0)));
			continue;
		}
		n = value ? pwrite(fd, &v, 8, reg) : pread(fd, &v, 8, reg);
		printf("%#x %#llx%s\n", reg, (unsigned long long)v,
		       n != 8  ? " fault"
		       : value ? " ok"
			       : "");
	}
	return 0;
}
