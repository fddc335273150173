// SPDX-License-Identifier: GPL-2.0-only
#include "host/privileges.h"

#include <errno.h>
#include <unistd.h>
#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "host/host.h"
#include "host/kernel.h"

#define BIT(capability) (1ULL << (capability))

/* --- the kernel's calls ----------------------------------------------------------------------- */

struct sets {
	__u64 effective, permitted, inheritable;
};

static struct sets get_sets(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {0};

	syscall(SYS_capget, &header, data);
	return (struct sets){data[0].effective | (__u64)data[1].effective << 32,
			     data[0].permitted | (__u64)data[1].permitted << 32,
			     data[0].inheritable | (__u64)data[1].inheritable << 32};
}

/* Returns 0 or -errno. The kernel never refuses to drop capabilities, but a seccomp filter may. */
static int set_sets(const struct sets *sets)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {
		{sets->effective, sets->permitted, sets->inheritable},
		{sets->effective >> 32, sets->permitted >> 32, sets->inheritable >> 32},
	};

	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static void take_effect(__u64 effective)
{
	struct sets sets = get_sets();

	sets.effective = effective & sets.permitted;
	set_sets(&sets);
}

/* --- whose rights ----------------------------------------------------------------------------- */

static bool lent(void)
{
	return getauxval(AT_SECURE);
}

int privileges_begin(void)
{
	if (!lent())
		return 0;
	prctl(PR_SET_KEEPCAPS, 1);
	if (setresgid(getgid(), getgid(), getgid()) || setresuid(getuid(), getuid(), getuid()))
		return -1;
	privileges_lower();
	return 0;
}

void privileges_lower(void)
{
	if (lent())
		take_effect(0);
}

__u64 privileges_held(void)
{
	struct sets sets = get_sets();

	return lent() ? sets.permitted : sets.effective;
}

void privileges_raise(void)
{
	if (lent())
		take_effect(-1ULL);
}

/* --- what is kept ----------------------------------------------------------------------------- */

static bool always(const struct host *host, const struct privileges_for *purpose)
{
	return true;
}

#define STOOD_IN (BIT(CAP_PERFMON) | BIT(CAP_BPF) | BIT(CAP_CHECKPOINT_RESTORE))

/* Whether CAP_SYS_ADMIN is needed. One of the reasons: without the extract of aggregation/kernel_types.h,
 * libbpf looks in all modules for a type that the kernel itself lacks (the maple tree's, of 6.1), which
 * requires this capability (BPF_BTF_GET_NEXT_ID). */
static bool stands_in(const struct host *host, const struct privileges_for *purpose)
{
	return host->perf_event_paranoid >= PARANOID_ALL || (privileges_held() & STOOD_IN) != STOOD_IN ||
	       !kernel_at_least(host, 6, 1);
}

static bool locks_tables(const struct host *host, const struct privileges_for *purpose)
{
	return !kernel_at_least(host, 5, 11);
}

/* For a caller with fewer rights, files are opened with his rights only. */
static bool names_paths(const struct host *host, const struct privileges_for *purpose)
{
	return purpose->paths && !lent();
}

static bool runs_command(const struct host *host, const struct privileges_for *purpose)
{
	return purpose->command;
}

static bool writes_registers(const struct host *host, const struct privileges_for *purpose)
{
	return purpose->msr;
}

static bool reloads(const struct host *host, const struct privileges_for *purpose)
{
	return purpose->reloads;
}

/* The list is explained in the header. */
static const struct {
	int capability;
	const char *name;
	bool (*needed)(const struct host *host, const struct privileges_for *purpose);
} kept[] = {
	{CAP_PERFMON, "CAP_PERFMON", always},
	{CAP_BPF, "CAP_BPF", always},
	{CAP_SYSLOG, "CAP_SYSLOG", always},
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", always},
	{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", always},
	{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", always},
	{CAP_IPC_LOCK, "CAP_IPC_LOCK", always},
	{CAP_SYS_ADMIN, "CAP_SYS_ADMIN", stands_in},
	{CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE", locks_tables},
	{CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", names_paths},
	{CAP_SYS_RAWIO, "CAP_SYS_RAWIO", writes_registers},
	{CAP_SYS_NICE, "CAP_SYS_NICE", reloads},
	{CAP_KILL, "CAP_KILL", runs_command},
};

int privileges_keep(struct host *host, const struct privileges_for *purpose)
{
	struct sets sets = get_sets();
	__u64 needed = 0;
	int err;

	if (host->root[0])
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (kept[i].needed(host, purpose))
			needed |= BIT(kept[i].capability);
	if (!purpose->command)
		sets.permitted &= needed;
	sets.effective &= needed;
	err = set_sets(&sets);
	if (err)
		return err;
	host->capabilities &= needed;
	host->held_there &= needed;
	return 0;
}

void privileges_of_command(void)
{
	struct sets sets = get_sets();

	if (lent())
		sets.permitted = 0;
	sets.effective = sets.permitted;
	set_sets(&sets);
}

void privileges_of_files(void)
{
	struct sets sets = get_sets();

	sets.effective &= BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH);
	sets.permitted = sets.effective;
	set_sets(&sets);
}

const char *privileges_name(__u64 set, size_t *at)
{
	while (*at < ARRAY_SIZE(kept)) {
		size_t i = (*at)++;

		if (set & BIT(kept[i].capability))
			return kept[i].name;
	}
	return NULL;
}
