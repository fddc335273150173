// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes CONFIG: no crash, no leak, and either activities or a refusal with a reason. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run/config.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	int fd = memfd_create("config", MFD_CLOEXEC);
	struct refusal refusal = {0};
	struct request request = {0}, again = {0};
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (config_read(&request, path, NULL, false, &refusal)) {
		if (!refusal.asked[0] || !refusal.why[0])
			abort();
	} else if (config_read_again(&again, &request, &refusal)) {
		abort(); /* nothing has changed */
	}
	request_release(&again);
	request_release(&request);
	close(fd);
	return 0;
}
