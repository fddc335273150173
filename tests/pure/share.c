// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the controller of a session's share of a CPU on a simulated session. Reads lines:
 *   share ALLOWED WINDOW_MS MOST   starts another controller
 *   NS OWN SAMPLES                 a tick: its length, the CPU time of nhmtap itself in it, and the
 * CPU
 *                                  time that samples would take with the requested periods, in ns
 *   text TEXT                      prints the share that a text means
 * For a tick, prints the CPU time of samples with the current factor, the new factor, the reason,
 * and whether the share is exceeded.
 */
#include <stdio.h>
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
