// SPDX-License-Identifier: GPL-2.0-only
/* waits INTERVALS MS: wakes up at the end of each interval and does nothing, to measure that cost.
 * */
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long left = argc > 1 ? atol(argv[1]) : 100, ns = (argc > 2 ? atol(argv[2]) : 10) * 1000000;
	struct itimerspec every = {{ns / 1000000000, ns % 1000000000}, {ns / 1000000000, ns % 1000000000}};
	struct pollfd timer = {.fd = timerfd_create(CLOCK_MONOTONIC, 0), .events = POLLIN};
	uint64_t expirations;

	timerfd_settime(timer.fd, 0, &every, NULL);
	while (left-- && poll(&timer, 1, -1) == 1 && read(timer.fd, &expirations, sizeof(expirations)) > 0)
		;
	return 0;
}
