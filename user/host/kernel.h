/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's configuration and settings that measuring depends on. */
#ifndef NHMTAP_KERNEL_H
#define NHMTAP_KERNEL_H

#include <stdbool.h>
#include <linux/types.h>

#include "host/host.h"
#include "refusal.h"

/* How the kernel was built: 'y', 'm', 'n', or 0 where its configuration is not to be found (it is
 * looked for in /proc/config.gz and /boot/config-RELEASE). */
char kernel_config(struct host *host, const char *option);

/* Page-table isolation is on: the kernel then offers no BTS (arch/x86/events/intel/bts.c). */
bool kernel_pti(const struct host *host);

/* The NMI watchdog runs: it holds a counter on every CPU (kernel/watchdog_hld.c). */
bool kernel_nmi_watchdog(const struct host *host);

/* A register of the PMU that firmware had in use when the kernel started, as the kernel's log says
 * (check_hw_exists(), arch/x86/events/core.c). */
struct firmware_register {
	__u32 address; /* 0x38d, IA32_FIXED_CTR_CTRL, or an IA32_PERFEVTSELx */
	__u64 value;
};

/* Looks for it in /dev/kmsg. Returns false if the log does not have it, does not reach back so far, or
 * can't be read. */
bool kernel_firmware_register(const struct host *host, struct firmware_register *found);

/* Whether the kernel's release is at least this one. */
bool kernel_at_least(const struct host *host, int major, int minor);

/* Whether the driver of the core's PMU counts wrongly: that of NetBurst does from Linux 6.1 on. It sets a
 * counter twice, the second time to what the last use of the counter has left over (p4_pmu_set_period(),
 * intel/p4.c). Samples come rightly from the second one on. */
bool kernel_miscounts(const struct host *host);

/* Why the machine may lack the PMU of this name, and what may bring it. Returns -1; the refusal's
 * status and asked are the caller's. */
int kernel_lacks_pmu(struct host *host, const char *name, struct refusal *refusal);

#endif
