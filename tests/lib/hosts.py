# SPDX-License-Identifier: GPL-2.0-only
"""Machines as files below a root folder, which nhmtap reads instead of this machine's
(--host-root). Each is a small table. A test takes one and overrides the files that have to
differ."""
import os

EVENT_SOURCE = "sys/bus/event_source/devices"
ALL_CAPABILITIES = 0x1ffffffffff

EVENTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "events")
# CPUs that have a table: every folder but that of the generic metrics.
TABLES = tuple(sorted(entry.name for entry in os.scandir(EVENTS)
                      if entry.is_dir() and entry.name not in ("generic", "__pycache__")))
# CPUs for which Intel publishes a list of events. It does not for the architectural events, for
# Core 2 (of which the Xeon 7400 is one) and for NetBurst (of which the Xeon 7100 is one).
CPUS = tuple(cpu for cpu in TABLES if cpu not in ("architectural", "core2", "netburst", "xeon-7400", "xeon-7100"))

CAP_SYS_ADMIN, CAP_SYSLOG, CAP_PERFMON, CAP_BPF = (1 << bit for bit in (21, 34, 38, 39))  # linux/capability.h


def cpuinfo(vendor="GenuineIntel", family=6, model=26, stepping=5,
            name="Intel(R) Xeon(R) CPU X5550"):
    return (f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
            f"model name\t: {name} @ 2.67GHz\nstepping\t: {stepping}\n")


def status(capabilities=ALL_CAPABILITIES, seccomp=0):
    return f"Name:\tnhmtap\nUid:\t0\t0\t0\t0\nCapEff:\t{capabilities:016x}\nSeccomp:\t{seccomp}\n"


def pmu(name, type_, formats=(), events=(), **caps):
    """The folder of a PMU in sysfs."""
    files = {"type": f"{type_}\n"}
    files |= {f"format/{term}": f"{bits}\n" for term, bits in dict(formats).items()}
    files |= {f"events/{event}": f"{terms}\n" for event, terms in dict(events).items()}
    files |= {f"caps/{cap}": f"{value}\n" for cap, value in caps.items()}
    return {f"{EVENT_SOURCE}/{name}/{path}": text for path, text in files.items()}


# What every machine has. Software events need no PMU folder.
MACHINE = {
    "proc/cpuinfo": cpuinfo(),
    "proc/self/status": status(),
    "proc/self/cgroup": "0::/\n",
    "proc/sys/kernel/perf_event_paranoid": "2\n",
    "proc/sys/kernel/perf_event_max_sample_rate": "100000\n",
    "proc/sys/kernel/perf_event_max_stack": "127\n",
    "sys/devices/system/cpu/online": "0-7\n",
    "sys/devices/system/cpu/possible": "0-7\n",
    "sys/kernel/btf/vmlinux": "BTF",
    "sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
}

# arch/x86/events/intel/core.c of Linux 6.1: nhm_format_attr, nhm_mem_events_attrs, the caps group.
NEHALEM_PMU = pmu(
    "cpu", 4,
    formats={"event": "config:0-7", "umask": "config:8-15", "edge": "config:18", "pc": "config:19",
             "any": "config:21", "inv": "config:23", "cmask": "config:24-31",
             "offcore_rsp": "config1:0-63", "ldlat": "config1:0-15"},
    events={"mem-loads": "event=0x0b,umask=0x10,ldlat=3",
            "cpu-cycles": "event=0x3c", "instructions": "event=0xc0",
            "branch-misses": "event=0x89,umask=0x7f"},
    max_precise=2, branches=16, pmu_name="nehalem")

NEHALEM = MACHINE | NEHALEM_PMU
# CPUID of a Xeon X5550: its leaves as `cpuid -r` prints them.
CPUID = {"cpuid": "CPU:\n"
                  "   0x00000001 0x00: eax=0x000106a5 ebx=0x00100800 ecx=0x009ce3bd edx=0xbfebfbff\n"
                  "   0x0000000a 0x00: eax=0x07300403 ebx=0x00000044 ecx=0x00000000 edx=0x00000603\n"}
# A virtual machine on a CPU of another kind, without a PMU.
WITHOUT_PMU = MACHINE | {"proc/cpuinfo": cpuinfo(model=143, name="Intel(R) Xeon(R) Processor")}
# The PMU of a CPU that has no table: all that is known about it comes from the kernel.
OTHER_PMU = WITHOUT_PMU | NEHALEM_PMU


def build(root, files):
    """Writes the files, except those with a value of None. Returns root as text."""
    for path, text in files.items():
        if text is None:
            continue
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
    return str(root)
