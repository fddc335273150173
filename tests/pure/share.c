// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller of a session's share of a CPU, against a session that exists only as numbers. Reads lines:
 *   share ALLOWED WINDOW_MS MOST   begins another controller
 *   NS OWN SAMPLES                 a tick: its length, and what nhmtap itself took in it, and what samples
 *                                  would have taken by the periods that were asked for, in ns
 *   text TEXT                      what a text asks for
 * and prints for a tick what samples took by the factor that held, the factor from then on, why, and whether
 * the share is exceeded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/share_control.h"

int main(void)
{
	static const char *const because[] = {
		[SHARE_ASKED] = "asked", [SHARE_TOO_DEAR] = "too_dear", [SHARE_ROOM] = "room"};
	struct share_control control;
	char line[200];

	while (fgets(line, sizeof(line), stdin)) {
		struct share_tick tick;
		unsigned long long ns, own, samples, window, most;
		double allowed;

		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "text ", 5)) {
			printf("%.9g\n", share_of_text(line + 5));
		} else if (sscanf(line, "share %lf %llu %llu", &allowed, &window, &most) == 3) {
			control = share_control_of(allowed);
			control.window_ns = window * 1000000;
			control.most = most;
		} else if (sscanf(line, "%llu %llu %llu", &ns, &own, &samples) == 3) {
			tick = (struct share_tick){ns, own, samples / control.factor};
			share_decide(&control, &tick);
			printf("%llu %.9g %s %d\n", (unsigned long long)tick.samples_ns, control.factor,
			       because[control.because], share_exceeded(&control));
		} else {
			return 1;
		}
	}
	return 0;
}
