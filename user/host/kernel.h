/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's configuration and settings that measuring depends on. */
#ifndef NHMTAP_KERNEL_H
#define NHMTAP_KERNEL_H

#include <stdbool.h>

#include "host/host.h"
#include "refusal.h"

/* How the kernel was built: 'y', 'm', 'n', or 0 where its configuration is not to be found (it is
 * looked for in /proc/config.gz and /boot/config-RELEASE). */
char kernel_config(struct host *host, const char *option);

/* Page-table isolation is on: the kernel then offers no BTS (arch/x86/events/intel/bts.c). */
bool kernel_pti(const struct host *host);

/* The NMI watchdog runs: it holds a counter on every CPU (kernel/watchdog_hld.c). */
bool kernel_nmi_watchdog(const struct host *host);

/* Whether the kernel's release is at least this one. */
bool kernel_at_least(const struct host *host, int major, int minor);

/* Why the machine may lack the PMU of this name, and what may bring it. Returns -1; the refusal's
 * status and asked are the caller's. */
int kernel_lacks_pmu(struct host *host, const char *name, struct refusal *refusal);

#endif
