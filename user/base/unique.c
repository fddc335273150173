// SPDX-License-Identifier: GPL-2.0-only
#include "base/unique.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* On the emulated machine, random numbers are the same in all runs, so that counts are. There its driver
 * leaves as many bytes of the host's here for each command (machine/src/guest/here.c). */
#define OF_THE_HOST "/run/nhmtap-run"

void unique_id(unsigned char id[UNIQUE_BYTES])
{
	unsigned char more[UNIQUE_BYTES] = {0};
	int fd = open(OF_THE_HOST, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0) {
		if (read(fd, more, sizeof(more)) != sizeof(more))
			memset(more, 0, sizeof(more));
		close(fd);
	}
	/* GRND_INSECURE: this must not block early at boot. */
	if (getrandom(id, UNIQUE_BYTES, GRND_INSECURE) != UNIQUE_BYTES)
		memset(id, 1, UNIQUE_BYTES);
	for (int i = 0; i < UNIQUE_BYTES; i++)
		id[i] ^= more[i];
}
