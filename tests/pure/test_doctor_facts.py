# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap doctor on machines that exist only as files: how registers are decoded, and which
permissions are missing. Other tests cover what it finds by trying."""
import gzip
import os
import resource
import struct

import hosts
import pytest
from hosts import ALL_CAPABILITIES, CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYSLOG, CPUID, NEHALEM, WITHOUT_PMU
from records import parse

NOBODY = {"proc/self/status": hosts.status(0)}
PERF_CAPABILITIES, MISC_ENABLE = 0x345, 0x1a0


@pytest.fixture
def doctor(nhmtap, host):
    """The findings on a machine. Only the cheapest facility is tried."""
    def run(*layers, registers=None, **options):
        root = host(*layers)
        if registers:
            path = f"{root.removeprefix('--host-root=')}/dev/cpu/0/msr"
            write_registers(path, registers)
        result = nhmtap("doctor", "--need", "software", root, **options)
        assert (result.status, result.err) == (0, "")
        return result
    return run


def write_registers(path, registers):
    """Writes the file of the msr driver: the value of each register is at its address."""
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file:
        for address, value in registers.items():
            file.seek(address)
            file.write(struct.pack("<Q", value))


def permission(result, name):
    record = result.one("permission", name=name)
    return record["value"], record["ok"]


# --- the processor -----------------------------------------------------------------------------------


def test_the_signature_is_decoded_as_the_guide_has_it(doctor):
    assert doctor(NEHALEM, CPUID).one("processor")["signature"] == {
        "eax": "0x106a5", "extended_family": 0, "extended_model": 1, "type": 0, "family": 6,
        "model": 10, "stepping": 5}


def test_leaf_0ah_is_decoded_field_by_field(doctor):
    assert doctor(NEHALEM, CPUID).one("processor")["perfmon"] == {
        "version": 3, "general_counters": 4, "general_width": 48, "events_length": 7,
        "events": {"core_cycles": True, "instructions_retired": True, "reference_cycles": False,
                   "llc_references": True, "llc_misses": True, "branches_retired": True,
                   "branch_misses_retired": False},
        "fixed_counters": 3, "fixed_width": 48}


def test_a_shorter_vector_of_events_says_nothing_of_the_rest(doctor):
    leaf = "0x0000000a 0x00: eax=0x03280202 ebx=0x00000000 ecx=0x00000000 edx=0x00000000\n"
    perfmon = doctor(NEHALEM, {"cpuid": CPUID["cpuid"].replace("0x0000000a", "0x0000000b") + leaf})
    perfmon = perfmon.one("processor")["perfmon"]
    assert perfmon["events"] == {"core_cycles": True, "instructions_retired": True,
                                 "reference_cycles": True}
    assert (perfmon["general_counters"], perfmon["general_width"]) == (2, 40)


def test_the_hypervisor_is_named(doctor):
    leaves = ("0x00000001 0x00: eax=0x000106a5 ebx=0x0 ecx=0x80000000 edx=0x0\n"
              "0x40000000 0x00: eax=0x40000001 ebx=0x4b4d564b ecx=0x564b4d56 edx=0x0000004d\n")
    processor = doctor(WITHOUT_PMU, {"cpuid": leaves}).one("processor")
    assert processor["hypervisor"] == "KVMKVMKVM"
    assert processor["features"] == {"debug_store": False, "debug_store_64": False,
                                     "perf_capabilities": False, "hypervisor": True}
    assert "perfmon" not in processor


def leaves_of(**words):
    """Lines of `cpuid -r` for leaves whose registers hold these texts of 16 bytes."""
    return "".join("   0x{} 0x00: eax=0x{:08x} ebx=0x{:08x} ecx=0x{:08x} edx=0x{:08x}\n".format(
        leaf.removeprefix("_"), *struct.unpack("<4I", text.ljust(16, b"\0"))) for leaf, text in words.items())


EMULATED = {"_4e480000": b"\x02\0HNnhmEmulation", "_4e480001": b"sandybridge-ep", "_4e480002": b"0123456789ab"}


def test_the_emulated_machine_is_known_by_its_leaves_of_cpuid(doctor):
    start = doctor(NEHALEM, {"cpuid": CPUID["cpuid"] + leaves_of(**EMULATED)}).one("start")
    assert start["host"]["emulated"] == {"model": "sandybridge-ep", "version": "0123456789ab"}
    assert {name: value for name, value in start["resource"].items() if "emulated" in name} == {
        "host.emulated.model": "sandybridge-ep", "host.emulated.version": "0123456789ab"}


@pytest.mark.parametrize("leaf", [b"", b"\x01\0HNnhmEmulation", b"\x02\0HNnhmemulation", b"\x02\0\0@KVMKVMKVM\0\0\0"])
def test_no_other_machine_is_taken_for_it(doctor, leaf):
    start = doctor(NEHALEM, {"cpuid": CPUID["cpuid"] + leaves_of(**{**EMULATED, "_4e480000": leaf})}).one("start")
    assert "emulated" not in start["host"] and not any("emulated" in name for name in start["resource"])


@pytest.mark.parametrize("command", [["list", "cycles"], ["explain", "cycles", "instructions"]])
def test_what_belongs_to_no_run_says_that_the_machine_is_emulated(nhmtap, host, command):
    root = host(NEHALEM, {"cpuid": CPUID["cpuid"] + leaves_of(**EMULATED)})
    records = [r for r in parse(nhmtap(*command, "--format", "json", root).out) if r["type"] in ("listed", "event")]
    assert len(records) > 1 and all(r["emulated"] == {"model": "sandybridge-ep", "version": "0123456789ab"} for r in records)
    line = "# emulated machine (sandybridge-ep, version 0123456789ab): cycles and latencies are a model's\n"
    table = nhmtap(*command, "--format", "table", root).out
    assert table.startswith(line) and table.count("# emulated") == 1
    for arguments in (["--cpu=nehalem-ep", root], [host(NEHALEM)]):
        assert "emulated" not in nhmtap(*command, "--format", "json", *arguments).out


def test_a_name_of_sixteen_letters_is_whole(doctor):
    leaves = leaves_of(**{**EMULATED, "_4e480001": b"abcdefghijklmnop"})
    assert doctor(NEHALEM, {"cpuid": leaves}).one("start")["host"]["emulated"]["model"] == "abcdefghijklmnop"


def test_a_machine_without_cpuid_has_no_signature(doctor):
    assert "signature" not in doctor(NEHALEM).one("processor")


def test_registers_are_decoded_where_they_can_be_read(doctor):
    result = doctor(NEHALEM, CPUID, registers={PERF_CAPABILITIES: 0x11c3, MISC_ENABLE: 0x850089})
    capabilities, misc = result.one("processor")["registers"]
    assert (capabilities["address"], capabilities["value"]) == ("0x345", "0x11c3")
    assert capabilities["fields"] == {"lbr_format": 3, "pebs_trap": 1, "pebs_registers": 1,
                                      "pebs_format": 1, "smm_freeze": 1}
    assert (misc["address"], misc["value"]) == ("0x1a0", "0x850089")
    assert misc["fields"] == {"perfmon_available": 1, "bts_unavailable": 0, "pebs_unavailable": 0}


def test_misc_enable_tells_what_is_switched_off(doctor):
    result = doctor(NEHALEM, CPUID, registers={PERF_CAPABILITIES: 0, MISC_ENABLE: 0x1800})
    assert result.one("processor")["registers"][1]["fields"] == {
        "perfmon_available": 0, "bts_unavailable": 1, "pebs_unavailable": 1}


@pytest.mark.parametrize("config, remedy", [
    ("CONFIG_X86_MSR=m\n", "modprobe msr"), ("# CONFIG_X86_MSR is not set\n", "CONFIG_X86_MSR")])
def test_registers_that_cannot_be_read_say_what_is_missing(doctor, config, remedy):
    for register in doctor(NEHALEM, CPUID, {"proc/config.gz": config}).one("processor")["registers"]:
        assert "value" not in register
        assert register["errno"] == "ENOENT"
        assert remedy in register["remedy"]


def test_a_processor_without_the_register_is_not_asked_for_it(doctor):
    leaves = "0x00000001 0x00: eax=0x000106a5 ebx=0x0 ecx=0x0 edx=0x0\n"
    result = doctor(NEHALEM, {"cpuid": leaves}, registers={PERF_CAPABILITIES: 1, MISC_ENABLE: 0})
    assert "PDCM" in result.one("processor")["registers"][0]["why"]


# --- the kernel -----------------------------------------------------------------------------------------


def test_the_kernel_says_how_it_was_built_and_set(doctor):
    kernel = doctor(NEHALEM, {
        "proc/config.gz": "CONFIG_PERF_EVENTS=y\nCONFIG_PERF_EVENTS_INTEL_UNCORE=m\n",
        "proc/sys/kernel/nmi_watchdog": "1\n",
        "sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI\n"}).one("kernel")
    assert kernel["page_table_isolation"] is True
    assert kernel["meltdown"] == "Mitigation: PTI"
    assert kernel["btf"] is True
    assert kernel["settings"]["nmi_watchdog"] == 1
    assert kernel["config"]["CONFIG_PERF_EVENTS"] == "y"
    assert kernel["config"]["CONFIG_PERF_EVENTS_INTEL_UNCORE"] == "m"
    assert kernel["config"]["CONFIG_CGROUP_PERF"] == "n"
    assert kernel["pmus"] == ["cpu"]


def test_a_compressed_configuration_is_read_too(nhmtap, host, tmp_path):
    root = host(NEHALEM, {"sys/kernel/btf/vmlinux": None})
    path = f"{root.removeprefix('--host-root=')}/proc/config.gz"
    with gzip.open(path, "wt") as file:
        file.write("CONFIG_CGROUP_PERF=y\n")
    kernel = nhmtap("doctor", "--need", "software", root).one("kernel")
    assert kernel["config"]["CONFIG_CGROUP_PERF"] == "y"
    assert kernel["btf"] is False


def test_the_watchdog_is_named_beside_the_counters(doctor):
    watched = {"proc/sys/kernel/nmi_watchdog": "1\n"}
    assert doctor(WITHOUT_PMU, watched).one("counters")["nmi_watchdog"] is True
    assert doctor(WITHOUT_PMU).one("counters")["nmi_watchdog"] is False


# What the kernel of a Xeon X5650 logged at boot (arch/x86/events/core.c, check_hw_exists()).
BROKEN_BIOS = ("6,211,98215,-;Performance Events: PEBS fmt1+, Westmere events, 16-deep LBR, Broken BIOS detected, "
               "complain to your hardware vendor.\n3,212,98230,-;[Firmware Bug]: the BIOS has corrupted hw-PMU "
               "resources (MSR {} is {})\n")


@pytest.mark.parametrize("register, value, facility, counters", [
    ("38d", "330", "fixed", "fixed counters 1, 2 "), ("186", "53003c", "stat", "general counters ")])
def test_counters_that_firmware_uses_are_told_from_the_kernels_log(nhmtap, host, register, value, facility, counters):
    result = nhmtap("doctor", "--need", facility, host(NEHALEM, {"dev/kmsg": BROKEN_BIOS.format(register, value)}))
    assert result.status == 2
    found = result.one("facility", name=facility)
    assert counters in found["why"] and f"0x{register} is 0x{value}" in found["why"]
    assert "firmware's setup" in found["remedy"]


# --- permissions -----------------------------------------------------------------------------------------


def refused(result):
    """The permissions that are refused, but not that of the tests' own pid namespace, which may not be the initial one."""
    return [p for p in result.of("permission") if not p["ok"] and p["name"] != "pid_namespace"]


def test_root_is_refused_nothing(doctor):
    assert not refused(doctor(NEHALEM))


@pytest.mark.parametrize("level, capabilities, ok", [
    (-1, 0, True), (0, 0, True), (1, 0, False), (2, 0, False), (2, CAP_PERFMON, True),
    (2, CAP_SYS_ADMIN, True), (3, CAP_PERFMON, False), (3, CAP_SYS_ADMIN, True)])
def test_paranoid_is_in_the_way_of_those_without_the_capability(doctor, level, capabilities, ok):
    result = doctor(NEHALEM, {"proc/sys/kernel/perf_event_paranoid": f"{level}\n",
                              "proc/self/status": hosts.status(capabilities)})
    assert permission(result, "perf_event_paranoid") == (level, ok)


@pytest.mark.parametrize("capabilities, perfmon, bpf", [
    (0, ("missing", False), ("missing", False)),
    (CAP_PERFMON, ("held", True), ("missing", False)),
    (CAP_BPF, ("missing", False), ("held", True)),
    (CAP_SYS_ADMIN, ("by CAP_SYS_ADMIN", True), ("by CAP_SYS_ADMIN", True)),
    (ALL_CAPABILITIES, ("held", True), ("held", True))])
def test_each_capability_is_told_apart(doctor, capabilities, perfmon, bpf):
    result = doctor(NEHALEM, {"proc/self/status": hosts.status(capabilities)})
    assert permission(result, "CAP_PERFMON") == perfmon
    assert permission(result, "CAP_BPF") == bpf


# kallsyms_show_value(), kernel/ksyms_common.c
@pytest.mark.parametrize("restricted, paranoid, capabilities, found", [
    (0, 1, 0, ("missing, not needed", True)), (0, 2, 0, ("missing", False)), (1, 1, 0, ("missing", False)),
    (1, 2, CAP_SYSLOG, ("held", True)), (1, 2, CAP_SYS_ADMIN, ("missing", False)),
    (2, 1, ALL_CAPABILITIES, ("held", False))])
def test_what_the_kernels_names_need_is_told(doctor, restricted, paranoid, capabilities, found):
    result = doctor(NEHALEM, {"proc/self/status": hosts.status(capabilities),
                              "proc/sys/kernel/kptr_restrict": f"{restricted}\n",
                              "proc/sys/kernel/perf_event_paranoid": f"{paranoid}\n"})
    assert permission(result, "CAP_SYSLOG") == found
    record = result.one("permission", name="CAP_SYSLOG")
    assert found[1] or "without names" in record["why"] and ("kptr_restrict" if restricted == 2 else "syslog") in (
        record["remedy"])


@pytest.mark.parametrize("capability, lost", [("CAP_SYS_PTRACE", "other users' processes"),
                                              ("CAP_DAC_READ_SEARCH", "closed to this user")])
def test_each_capability_that_names_need_says_what_is_lost_without_it(doctor, capability, lost):
    bit = {"CAP_SYS_PTRACE": 1 << 19, "CAP_DAC_READ_SEARCH": 1 << 2}[capability]
    assert permission(doctor(NEHALEM, {"proc/self/status": hosts.status(bit)}), capability) == ("held", True)
    record = doctor(NEHALEM, {"proc/self/status": hosts.status(ALL_CAPABILITIES & ~bit)}).one(
        "permission", name=capability)
    assert (record["value"], record["ok"]) == ("missing", False) and lost in record["why"]


@pytest.mark.parametrize("level, found", [(2, ("missing, not needed", True)),
                                          (3, ("missing", False))])
def test_sys_admin_is_needed_where_debian_asks_for_it(doctor, level, found):
    result = doctor(NEHALEM, NOBODY, {"proc/sys/kernel/perf_event_paranoid": f"{level}\n"})
    assert permission(result, "CAP_SYS_ADMIN") == found


@pytest.mark.parametrize("text, found", [
    ("[none] integrity confidentiality\n", ("none", True)),
    ("none [integrity] confidentiality\n", ("integrity", True)),
    ("none integrity [confidentiality]\n", ("confidentiality", False)),
    (None, ("not built in", True))])
def test_lockdown_is_in_the_way_when_it_keeps_secrets(doctor, text, found):
    assert permission(doctor(NEHALEM, {"sys/kernel/security/lockdown": text}), "lockdown") == found


def test_a_filter_that_lets_perf_events_through_is_not_in_the_way(doctor):
    result = doctor(NEHALEM, {"proc/self/status": hosts.status(seccomp=2)})
    assert permission(result, "seccomp") == ("filter", True)


# "bpf: Eliminate rlimit-based memory accounting": Linux 5.11. Bit 24 is CAP_SYS_RESOURCE, include/uapi/linux/capability.h.
@pytest.mark.parametrize("release, capabilities, ok", [
    ("5.10.0-30-amd64", 0, False), ("5.10.0-30-amd64", 1 << 24, True), ("4.19.0", 0, False), ("5.11.0", 0, True),
    ("6.1.0", 0, True), ("7.0.1", 0, True)])
def test_locked_memory_is_in_the_way_on_kernels_that_count_tables_as_such(doctor, release, capabilities, ok):
    limit = (65536, 65536)
    result = doctor(NEHALEM, {"proc/sys/kernel/osrelease": f"{release}\n", "proc/self/status": hosts.status(capabilities)},
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, limit))
    assert permission(result, "locked_memory_limit") == (65536, ok)


def test_few_open_files_are_not_enough_for_many_cpus(doctor):
    limit = (256, 256)
    files = {"sys/devices/system/cpu/online": "0-63\n", "sys/devices/system/cpu/possible": "0-63\n"}
    result = doctor(NEHALEM, files,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))
    record = result.one("permission", name="open_files_limit")
    assert (record["value"], record["ok"]) == (256, False)
    assert "ulimit -Hn 1088" in record["remedy"]


def test_a_virtual_machine_without_a_pmu_is_told_from_one_that_has_it(doctor):
    virtual = {"proc/cpuinfo": hosts.cpuinfo() + "flags\t\t: fpu vme hypervisor lahf_lm\n"}
    without = {path: text for path, text in NEHALEM.items() if hosts.EVENT_SOURCE not in path}
    assert permission(doctor(NEHALEM, virtual), "virtual_machine") == ("yes", True)
    assert permission(doctor(without, virtual), "virtual_machine") == ("yes", False)
    assert permission(doctor(without), "virtual_machine") == ("no", True)


def test_what_is_in_the_way_says_why_and_what_to_do(doctor):
    result = doctor(WITHOUT_PMU, NOBODY, {"proc/sys/kernel/perf_event_paranoid": "3\n"})
    assert [p["name"] for p in refused(result)] == ["perf_event_paranoid", "CAP_PERFMON", "CAP_BPF",
                                           "CAP_SYS_ADMIN", "CAP_SYSLOG", "CAP_SYS_PTRACE",
                                           "CAP_DAC_READ_SEARCH"]
    assert all(p["why"] and p["remedy"] for p in refused(result))


# --- missing PMUs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("event, files, why, remedy", [
    ("intel_bts//u", {"sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI\n"},
     "page-table isolation", "nopti"),
    ("intel_bts//u", {"sys/devices/system/cpu/vulnerabilities/meltdown": "Vulnerable\n"},
     "no branch trace store", "LBR"),
    ("uncore/clockticks/", {"proc/config.gz": "CONFIG_PERF_EVENTS_INTEL_UNCORE=m\n"},
     "not loaded", "modprobe intel-uncore"),
    ("uncore/clockticks/", {"proc/config.gz": "CONFIG_PERF_EVENTS=y\n"},
     "built without", "CONFIG_PERF_EVENTS_INTEL_UNCORE"),
    ("uncore/clockticks/", {"proc/config.gz": "CONFIG_PERF_EVENTS_INTEL_UNCORE=y\n"},
     "has not found", "hardware itself"),
    ("cstate_core/c6-residency/", {}, "C-states", "modprobe intel-cstate"),
    ("power/energy-pkg/", {}, "Sandy Bridge", "power supply")])
def test_a_missing_pmu_says_why_and_what_brings_it(nhmtap, host, event, files, why, remedy):
    result = nhmtap("explain", host(NEHALEM, files), event)
    assert result.status == 2
    assert why in result.err and remedy in result.err.split("Next: ")[1]


# --- the command line ---------------------------------------------------------------------------------------


def test_an_unknown_need_is_told_which_there_are(nhmtap):
    result = nhmtap("doctor", "--need", "stat,memory")
    assert (result.status, result.out) == (1, "")
    assert "'memory'" in result.err
    for name in ("stat", "profile", "precise", "mem", "offcore", "branch", "bts", "uncore", "cgroup",
                 "bpf"):
        assert name in result.err.split("Next: ")[1]


def test_an_empty_need_is_refused(nhmtap):
    assert nhmtap("doctor", "--need", "").status == 1


def test_a_command_is_refused(nhmtap):
    result = nhmtap("doctor", "--", "true")
    assert (result.status, result.out) == (1, "")


def test_a_table_fits_a_terminal(nhmtap, host):
    result = nhmtap("doctor", host(NEHALEM, CPUID, NOBODY), "--format", "table", "-v")
    assert result.status == 0
    assert max(len(line) for line in result.out.splitlines()) <= 80
    assert not [line for line in result.out.splitlines() if line != line.rstrip()]
    for heading in ("PERMISSION", "COUNTERS", "FACILITY"):
        assert result.out.count(heading) == 1


# --- the summary ----------------------------------------------------------------------------------


@pytest.fixture
def diagnosis(nhmtap, host):
    """The summary of a machine without a PMU, after all facilities were tried: the record and the
    table."""
    def run(*layers):
        root = host(WITHOUT_PMU, *layers)
        return (nhmtap("doctor", root, "--format", "json").one("diagnosis"),
                nhmtap("doctor", root, "--format", "table").out)
    return run


def test_every_reason_is_told_once_for_all_that_it_stops(diagnosis):
    record, table = diagnosis(CPUID)
    whys = [reason["why"] for reason in record["reasons"]]
    assert len(set(whys)) == len(whys)
    assert {"stat", "mem", "branch", "precise"} <= set(record["reasons"][0]["stops"])
    assert " ".join(table.split()).count(record["reasons"][0]["why"]) == 1


def test_every_facility_either_works_or_has_one_reason(nhmtap, host):
    result = nhmtap("doctor", host(WITHOUT_PMU), "--format", "json")
    record = result.one("diagnosis")
    told = record["works"] + [name for reason in record["reasons"] for name in reason["stops"]]
    assert sorted(told) == sorted([f["name"] for f in result.of("facility")] + ["counters"] +
                                  [p["name"] for p in result.of("permission") if not p["ok"]])
    for reason in record["reasons"]:
        for facility in (f for f in result.of("facility") if f["name"] in reason["stops"]):
            assert facility["why"] == reason["why"]


def test_the_smallest_change_comes_first(diagnosis):
    """The order: no change, a setting, a privilege, another kernel, another machine."""
    record, table = diagnosis(NOBODY, {"proc/sys/kernel/perf_event_paranoid": "3\n",
                                       "proc/config.gz": "CONFIG_PERF_EVENTS=y\n"})
    remedies = [remedy["remedy"] for remedy in record["remedies"]]
    steps = ["cpu-clock", "sysctl", "cap_perfmon", "run a kernel with", "hardware"]
    places = [min((i for i, remedy in enumerate(remedies) if step in remedy), default=None)
              for step in steps if any(step in remedy for remedy in remedies)]
    assert len(places) >= 3 and places == sorted(places)
    numbers = [line.split(".")[0].strip() for line in table.partition("WHAT TO DO")[2].splitlines()
               if line[:5].strip(" 0123456789") == "."]
    assert numbers == [str(i + 1) for i in range(len(numbers))] and numbers


def test_what_the_driver_does_not_offer_is_said_without_a_list_of_its_terms(nhmtap, host):
    """As on virtual machines, whose processors have the architectural events alone."""
    root = host(NEHALEM, {f"{hosts.EVENT_SOURCE}/cpu/events/mem-loads": None, f"{hosts.EVENT_SOURCE}/cpu/format/offcore_rsp": None})
    result = nhmtap("doctor", root, "--format", "json")
    whys = {found["name"]: found["why"] for found in result.of("facility") if found["name"] in ("mem", "offcore")}
    assert whys == {name: f"the driver of this CPU's PMU has no '{what}'" for name, what in (("mem", "mem-loads"), ("offcore", "offcore_rsp"))}
    assert not any("terms: " in remedy["remedy"] for remedy in result.one("diagnosis")["remedies"])
    error = nhmtap("offcore", host(NEHALEM, {"proc/cpuinfo": hosts.cpuinfo(model=143),
                   f"{hosts.EVENT_SOURCE}/cpu/format/offcore_rsp": None}), "--", "true").one("error")
    assert "table of this CPU" in error["why"] and "offcore_rsp" not in error.get("remedy", "")


def test_what_no_kernel_offers_is_one_line_unless_all_is_asked_for(nhmtap, host):
    short = nhmtap("doctor", host(NEHALEM), "--format", "table").out
    full = nhmtap("doctor", host(NEHALEM), "--format", "table", "-v").out
    assert "branch_step, uncore_interrupt: a reason of its own each" in " ".join(short.split())
    assert "PTRACE_SINGLEBLOCK" not in short and len(short.splitlines()) < 24
    assert "PTRACE_SINGLEBLOCK" in full and "no Linux kernel" not in " ".join(full.split())
    assert full.count("\nFACILITY") == 1 and "branch_step          no" in full


@pytest.mark.parametrize("arguments, asked, next_", [
    (("--only", "counts"), "--only 'counts'", "add --selftest"),
    (("--selftest", "--only", "counts,nonsense"), "--only 'counts,nonsense'", "tests: counts, accesses"),
    (("--selftest", "--need", "mem"), "--selftest and --need", "one of them"),
])
def test_a_selftest_that_is_not_to_be_had_is_refused(nhmtap, arguments, asked, next_):
    result = nhmtap("doctor", *arguments)
    assert result.status == 1 and asked in result.err and next_ in result.err
