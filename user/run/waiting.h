/* SPDX-License-Identifier: GPL-2.0-only */
/* What a run waits for while its target goes: signals, timers, commands, the target's end. */
#ifndef NHMTAP_WAITING_H
#define NHMTAP_WAITING_H

#include "run/run.h"

/* Waits for the end of the run, reporting each interval but the last; run->reason says why it ended. */
void wait_for_end(struct run *run);

#endif
