# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap doctor on the machine that the tests run on: what it reports must be true."""
import os
import re
import resource
import subprocess

import pytest
from records import Result

NOBODY = ["setpriv", "--reuid", "nobody", "--clear-groups"]
HAS_PMU = os.path.exists("/sys/bus/event_source/devices/cpu")


@pytest.fixture
def as_nobody(nhmtap):
    """Runs nhmtap as the user nobody, with these capabilities and no others."""
    def run(*arguments, capabilities=()):
        keep = ",".join(["-all"] + [f"+{name}" for name in capabilities])
        prefix = NOBODY + ["--inh-caps", keep, "--ambient-caps", keep, "--bounding-set", keep]
        done = subprocess.run(prefix + nhmtap.command(*arguments), capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL)
        return type(nhmtap("schema", "end"))(done.returncode, done.stdout, done.stderr)
    return run


def facilities(result):
    return {record["name"]: record["works"] for record in result.of("facility")}


def permissions(result):
    return {record["name"]: record["ok"] for record in result.of("permission")}


@pytest.fixture
def everything(nhmtap):
    return nhmtap("doctor")


def test_everything_is_tried_and_nothing_asked_for_is_no_failure(everything):
    assert (everything.status, everything.err) == (0, "")
    assert len(everything.of("permission")) == 14
    assert len(everything.of("facility")) == len({f["name"] for f in everything.of("facility")}) > 20
    assert everything.one("end")["reason"] == "done"


@pytest.mark.parametrize("who", ["nhmtap", "as_nobody"])
def test_in_short_it_fits_a_screen(who, request):
    lines = request.getfixturevalue(who)("doctor", "--format", "table").out.splitlines()
    assert len(lines) < 24 and max(map(len, lines)) <= 80
    works, not_working, to_do = (next(i for i, line in enumerate(lines) if line.startswith(heading))
                                 for heading in ("WORKS", "DOES NOT WORK", "WHAT TO DO"))
    assert works < not_working < to_do


def test_what_needs_no_pmu_works_for_root(everything):
    works = facilities(everything)
    assert all(works[name] for name in ("software", "kernel", "system", "bpf", "profile"))


def test_what_does_not_work_says_why(everything):
    for facility in everything.of("facility", works=False):
        assert facility["asked"] and facility["why"]


def test_what_works_has_been_seen_to_work(everything):
    for facility in everything.of("facility", works=True):
        # Zero is right for a core that never slept, and for less energy than its coarse unit.
        assert facility.get("value", 1) > 0 or facility["name"] in ("cstate", "rapl")
        assert facility.get("running_ns", 1) > 0
        assert facility.get("samples_arrived", 1) > 0
    assert everything.one("facility", name="profile")["samples_arrived"] > 0
    assert everything.one("facility", name="system")["value"] > 0


def test_without_a_core_pmu_its_facilities_are_refused_for_that_reason(everything):
    for name in ("stat", "fixed", "rdpmc", "sample", "precise", "mem", "offcore", "branch"):
        facility = everything.one("facility", name=name)
        if HAS_PMU:
            assert facility["works"] or "core PMU" not in facility["why"]
        else:
            assert not facility["works"] and "no core PMU" in facility["why"]


def test_counters_are_free_only_where_there_are_counters(everything):
    counters = everything.one("counters")
    assert (counters["general_free"] > 0) == HAS_PMU
    assert "general" not in counters or counters["general_free"] <= counters["general"]
    assert HAS_PMU or "no core PMU" in counters["why"]


@pytest.mark.parametrize("need, status", [("software", 0), ("profile,bpf", 0), ("pin_control", 2),
                                          ("software,pin_control", 2), ("bpf,pin_control,bpf", 2)])
def test_the_status_is_that_of_what_is_needed(nhmtap, need, status):
    result = nhmtap("doctor", "--need", need)
    assert result.status == result.one("end")["exit_status"] == status
    assert set(facilities(result)) == set(need.split(","))
    assert ("facility 'pin_control'" in result.err) == (status == 2)


def test_a_need_that_this_machine_has_not_ends_with_2(nhmtap):
    assert nhmtap("doctor", "--need", "mem").status == (0 if HAS_PMU else 2)


def test_nobody_lacks_each_permission_by_itself(as_nobody):
    with open("/proc/sys/kernel/perf_event_paranoid") as file:
        level = int(file.read())
    result = as_nobody("doctor", "--need", "software,bpf,profile,system,cgroup")
    ok = permissions(result)
    assert result.status == 2
    assert not ok["CAP_PERFMON"] and not ok["CAP_BPF"]
    assert ok["CAP_SYS_ADMIN"] == (level < 3)
    assert ok["perf_event_paranoid"] == (level <= 0)
    assert facilities(result) == {"software": level <= 2, "bpf": False, "profile": False,
                                  "system": level <= 0, "cgroup": level <= 0}
    bpf = result.one("facility", name="bpf")
    assert bpf["errno"] == "EPERM" and "CAP_BPF" in bpf["why"] and "setcap" in bpf["remedy"]


@pytest.mark.parametrize("capability, permission", [("bpf", "CAP_BPF"), ("perfmon", "CAP_PERFMON")])
def test_one_capability_of_the_two_is_not_enough(as_nobody, capability, permission):
    result = as_nobody("doctor", "--need", "profile", capabilities=[capability])
    ok = permissions(result)
    assert {name for name in ("CAP_BPF", "CAP_PERFMON") if ok[name]} == {permission}
    assert facilities(result) == {"profile": False}


def test_both_capabilities_are_enough_below_debians_level(as_nobody):
    result = as_nobody("doctor", "--need", "bpf,profile,kernel,system", capabilities=["bpf", "perfmon"])
    with open("/proc/sys/kernel/perf_event_paranoid") as file:
        works = int(file.read()) <= 2
    assert facilities(result) == {"bpf": True, "profile": works, "kernel": works, "system": works}


def test_a_limit_on_open_files_is_told(nhmtap):
    result = nhmtap("doctor", "--need", "software", preexec_fn=few_files)
    assert permissions(result)["open_files_limit"] is False


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))


def test_nothing_stays_open(nhmtap, tmp_path):
    """Each descriptor that the kernel gave for an event is closed by the end of the run."""
    trace = tmp_path / "trace"
    subprocess.run(["strace", "-qq", "-o", trace, "-e", "trace=perf_event_open,close",
                    *nhmtap.command("doctor", "--need", "software,kernel,system,profile,cgroup")],
                   stdout=subprocess.DEVNULL, check=True, timeout=60,
                   env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})  # it fails under strace
    open_now = set()
    opened = 0
    for line in trace.read_text().splitlines():
        if match := re.match(r"perf_event_open\(.*\) = (\d+)$", line):
            open_now.add(match[1])
            opened += 1
        elif match := re.match(r"close\((\d+)\)", line):
            open_now.discard(match[1])
    assert opened >= 5
    assert not open_now


def test_two_at_the_same_time_do_not_disturb_each_other(nhmtap):
    running = [nhmtap.start("doctor", "--need", "software,profile") for _ in range(2)]
    assert [nhmtap.finish(process).status for process in running] == [0, 0]


@pytest.mark.parametrize("gone", ["/proc", "/sys"])
def test_without_proc_or_sys_an_error_record_says_so(nhmtap, gone):
    hidden = f"mount -t tmpfs none {gone} && exec \"$@\""
    if gone == "/proc":
        # LeakSanitizer, if it is built in, needs /proc, and reads there that it is switched off.
        hidden = hidden.replace("&&", "&& mkdir /proc/self && "
                                      "printf 'ASAN_OPTIONS=detect_leaks=0\\0' > /proc/self/environ &&")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", hidden, "sh", *nhmtap.command("doctor"), "--format", "json"],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    result = Result(done.returncode, done.stdout, done.stderr)
    assert [r["type"] for r in result.records] == ["error", "end"]
    assert gone in result.one("error")["why"] and result.one("error")["errno"] == "ENOENT"


def test_each_row_of_the_selftest_has_its_name_and_its_verdict_apart(nhmtap):
    """Without a PMU all are left out."""
    names = [record["name"] for record in nhmtap("doctor", "--selftest", "--format", "json").of("selftest")]
    rows = re.findall(r"^(\w+) +(passed|failed|left out) ", nhmtap("doctor", "--selftest", "--format", "table").out, re.M)
    assert len(names) > 10 and [name for name, _ in rows] == names
