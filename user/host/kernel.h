/* SPDX-License-Identifier: GPL-2.0-only */
/* The configuration and the settings of the kernel on which measuring depends. */
#pragma once

#include <stdbool.h>
#include <linux/types.h>

#include "base/refusal.h"
#include "host/host.h"

/* How an option is set in the kernel's configuration: 'y', 'm', 'n', or 0 if the configuration was not found
 * in /proc/config.gz and /boot/config-RELEASE. */
char kernel_config(struct host *host, const char *option);

/* Whether page-table isolation is enabled. The kernel then does not offer BTS
 * (arch/x86/events/intel/bts.c). */
bool kernel_pti(const struct host *host);

/* Whether the NMI watchdog runs. It uses a counter on every CPU (kernel/watchdog_hld.c). */
bool kernel_nmi_watchdog(const struct host *host);

/* A register of the PMU that firmware was using when the kernel started, according to the kernel's log
 * (check_hw_exists(), arch/x86/events/core.c). */
struct firmware_register {
	__u32 address; /* 0x38d, IA32_FIXED_CTR_CTRL, or an IA32_PERFEVTSELx */
	__u64 value;
};

/* Looks for such a register in /dev/kmsg. Returns false if the log has none, no longer has the beginning, or
 * can't be read. */
bool kernel_firmware_register(const struct host *host, struct firmware_register *found);

/* Whether the kernel's release is at least this version. */
bool kernel_at_least(const struct host *host, int major, int minor);

/* Whether the driver of the core's PMU counts wrongly. That of NetBurst does since Linux 6.1: it sets a
 * counter twice, the second time to a value left from the counter's last use (p4_pmu_set_period(),
 * intel/p4.c). Samples are right from the second one on. */
bool kernel_miscounts(const struct host *host);

/* Explains why the machine may lack the PMU of this name, and what may provide it. The caller fills in the
 * refusal's status and `asked`. Always returns -1. */
int kernel_lacks_pmu(struct host *host, const char *name, struct refusal *refusal);
