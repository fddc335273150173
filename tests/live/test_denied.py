# SPDX-License-Identifier: GPL-2.0-only
"""What refuses a run: each cause has its own sentence, with the smallest change that helps."""
import os
import resource
import shutil
import subprocess

import hosts
import pytest
from callers import paranoid
from puppet import Puppet
from records import FILE, NHMTAP, Result, program

NOBODY = 65534
FORK_PERMISSIONS = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def run(before, *arguments, **options):
    """Runs nhmtap through another program."""
    # LeakSanitizer traces the process, which fails if it is traced already or must not be traced.
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([*map(str, before), os.path.abspath(NHMTAP), *map(str, arguments)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False, env=environment, **options)
    return Result(done.returncode, done.stdout, done.stderr)


def refusal(result, status=2):
    """The error record of a refused run, after the checks that all refusals share."""
    assert result.status == status, result.out + result.err
    assert [record["type"] for record in result.records] == ["error", "end"]
    error = result.one("error")
    assert error["exit_status"] == status
    for words in (error["asked"], error["why"], error.get("remedy", "")):
        assert words in result.err
    return error


# --- capabilities and perf_event_paranoid as they are on this machine -----------------------------


@pytest.fixture(scope="module")
def as_nobody(tmp_path_factory):
    """Runs nhmtap as nobody: a copy, since only root may be able to reach the build."""
    folder = tmp_path_factory.mktemp("anyone")
    for parent in (folder, *folder.parents):
        if parent.name.startswith(("pytest-", "popen-", "anyone")):
            parent.chmod(parent.stat().st_mode | 0o055)
    copy = folder / "nhmtap"
    shutil.copy(FILE, copy)
    copy.chmod(0o755)

    def runs(*arguments, capabilities="", more=()):
        command = [*FORK_PERMISSIONS, *more]
        if capabilities:
            command += [f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"]
        done = subprocess.run([*command, copy, *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False, cwd="/",
                              env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
        return Result(done.returncode, done.stdout, done.stderr)
    return runs


def test_setcap_is_not_the_remedy_where_it_has_no_effect(as_nobody):
    run_it = "profile", "-e", "page-faults:u", "-c", "1", "--", "true"
    assert "setcap cap_bpf,cap_perfmon+ep" in refusal(as_nobody(*run_it))["remedy"]
    remedy = refusal(as_nobody(*run_it, more=["--no-new-privs"]))["remedy"]
    assert remedy == "run as root, or start it without no_new_privs, under which setcap and sudo have no effect"


def test_the_users_own_side_is_counted_or_the_level_refuses_it(as_nobody):
    result = as_nobody("stat", "-e", "page-faults", "--", "true")
    if paranoid() <= 2:
        assert result.status == 0, result.err
        assert result.of("count")[0]["value"] > 0
        named = "page-faults:u" if paranoid() == 2 else "page-faults"
        assert result.of("count")[0]["event"] == named
    else:
        assert "needs 2 or less" in refusal(result)["why"]


@pytest.mark.parametrize("arguments, level, why", [
    (["page-faults:k", "--", "true"], 1, "the kernel's side needs 1 or less"),
    (["page-faults", "-a", "--duration", "0.1"], 0, "whole CPUs need 0 or less")])
def test_the_kernels_side_and_whole_cpus_are_counted_or_the_level_refuses_them(as_nobody, arguments, level, why):
    result = as_nobody("stat", "-e", *arguments)
    if paranoid() <= level:
        assert result.status == 0, result.err
        return
    error = refusal(result)
    assert f"perf_event_paranoid is {paranoid()}" in error["why"] and why in error["why"]
    assert f"kernel.perf_event_paranoid={level}" in error["remedy"]
    assert error["errno"] == "EACCES"


@pytest.mark.parametrize("side", ["", "k"])
def test_the_tracepoint_of_every_function_needs_a_level_of_its_own(as_nobody, side):
    """The kernel lets no others than the privileged count it, not even their own processes."""
    if paranoid() < 0:
        return
    error = refusal(as_nobody("stat", "--force", "-e", f"tracepoint/config=1/{side}", "--", "true"))
    assert "all of the kernel's functions needs -1 or less" in error["why"]
    assert "sysctl kernel.perf_event_paranoid=-1" in error["remedy"]


def test_cgroups_that_may_come_are_refused_before_they_do(as_nobody):
    result = as_nobody("stat", "-e", "page-faults", "-G", "/nhmtap-none/*", "--duration", "0.1")
    if paranoid() <= 0:
        assert result.status == 0, result.err
        return
    assert "whole CPUs need 0 or less" in refusal(result)["why"]


def test_another_users_process_may_not_be_looked_at(as_nobody):
    with Puppet() as puppet:
        error = refusal(as_nobody("stat", "-e", "page-faults:u", "-p", puppet.pid))
    if paranoid() <= 2:
        assert "another user" in error["why"] and "CAP_PERFMON" in error["remedy"]


def test_perfmon_is_enough_to_count_all_that_the_level_allows(as_nobody):
    result = as_nobody("stat", "-e", "page-faults,cs:k", "-a", "--duration", "0.1",
                       capabilities="+perfmon")
    if paranoid() <= 2:
        assert result.status == 0, result.err
    else:
        assert "CAP_SYS_ADMIN" in refusal(result)["remedy"]


@pytest.mark.parametrize("capabilities, has", [("", "neither"), ("+bpf", "only CAP_BPF"),
                                               ("+perfmon", "only CAP_PERFMON")])
def test_loading_says_which_capability_is_missing(as_nobody, capabilities, has):
    if paranoid() > 2:
        return  # events are opened before anything is loaded
    error = refusal(as_nobody("profile", "-e", "page-faults:u", "-c", "1", "--", "true",
                              capabilities=capabilities))
    assert f"this process has {has}" in error["why"]
    assert error["errno"] == "EPERM"
    assert "cap_bpf,cap_perfmon" in error["remedy"]


def test_both_capabilities_are_enough_to_profile(as_nobody):
    result = as_nobody("profile", "-e", "page-faults:u", "-c", "1", "--", "true",
                       capabilities="+bpf,+perfmon")
    if paranoid() <= 2:
        assert result.status == 0, result.err
        assert result.one("profile")["value"] > 0
    else:
        assert "CAP_SYS_ADMIN" in refusal(result)["remedy"]


# --- the same at other levels: facts come from files, and errors from strace ----------------------


def injected(tmp_path, call, error, *arguments, files=hosts.WITHOUT_PMU, when="1+"):
    root = hosts.build(tmp_path / "host", files)
    command, *rest = arguments
    return run(["strace", "-o", tmp_path / "strace", "-e", f"trace={call}", "-e",
                f"inject={call}:error={error}:when={when}"], command, "--host-root", root, *rest)


def machine(level, capabilities=0, seccomp=0, lockdown="none"):
    return hosts.WITHOUT_PMU | {
        "proc/sys/kernel/perf_event_paranoid": f"{level}\n",
        "proc/self/status": hosts.status(capabilities, seccomp),
        "sys/kernel/security/lockdown":
            "none integrity confidentiality\n".replace(lockdown, f"[{lockdown}]")}


@pytest.mark.parametrize("level, capabilities, arguments, why, remedy", [
    (3, 0, ["-e", "cs", "--", "true"], "any event needs 2 or less", "paranoid=2"),
    (3, hosts.CAP_PERFMON, ["-e", "faults:u", "--", "true"], "is 3;", "CAP_PERFMON is not enough"),
    (3, 0, ["-e", "cs:k", "--", "true"], "kernel's side needs 1", "paranoid=1"),
    (2, 0, ["-e", "cs:k", "--", "true"], "kernel's side needs 1", "give CAP_PERFMON"),
    (2, 0, ["-e", "cs", "-a"], "whole CPUs need 0", "paranoid=0"),
    (1, 0, ["-e", "cs", "-a"], "whole CPUs need 0", "paranoid=0"),
    (-1, 0, ["-e", "cs", "-a"], "security module", "audit log"),
    (2, hosts.CAP_PERFMON, ["-e", "cs", "--", "true"], "security module", "audit log"),
])
def test_each_level_says_what_it_refuses_and_which_would_do(tmp_path, level, capabilities,
                                                            arguments, why, remedy):
    error = refusal(injected(tmp_path, "perf_event_open", "EACCES", "stat", *arguments,
                             files=machine(level, capabilities)))
    assert why in error["why"] and remedy in error["remedy"], error


def test_lockdown_is_told_apart_from_the_level(tmp_path):
    files = machine(2, hosts.ALL_CAPABILITIES, lockdown="confidentiality")
    error = refusal(injected(tmp_path, "perf_event_open", "EACCES", "stat", "-e", "cs", "--",
                             "true", files=files))
    assert "locked down" in error["why"]
    error = refusal(injected(tmp_path, "bpf", "EPERM", "profile", "-e", "cs", "--", "true",
                             files=files))
    assert "locked down" in error["why"]


def test_a_kernel_without_perf_events_says_so(tmp_path):
    files = hosts.WITHOUT_PMU | {"proc/sys/kernel/perf_event_paranoid": None}
    error = refusal(injected(tmp_path, "perf_event_open", "ENOSYS", "stat", "-e", "cs", "--",
                             "true", files=files))
    assert "without perf events" in error["why"]


def test_a_kernel_without_bpf_says_so(tmp_path):
    error = refusal(injected(tmp_path, "bpf", "ENOSYS", "profile", "-e", "cs", "--", "true"))
    assert "without bpf()" in error["why"]


# --- seccomp, for real ----------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_a_seccomp_filter_is_named(error):
    result = run([program("denied"), "perf_event_open", error], "stat", "-e", "cs", "--", "true")
    found = refusal(result)
    assert "seccomp filter of this process refuses perf_event_open" in found["why"]
    assert "--cap-add PERFMON" in found["remedy"]
    assert found["errno"] == error


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_a_seccomp_filter_that_refuses_bpf_is_named(error):
    result = run([program("denied"), "bpf", error], "profile", "-e", "cs", "--", "true")
    found = refusal(result)
    assert "seccomp filter of this process refuses bpf" in found["why"]
    assert found["errno"] == error


def test_counting_does_without_bpf():
    result = run([program("denied"), "bpf", "EPERM"], "stat", "-e", "cs", "--", "true")
    assert (result.status, result.err) == (0, "")


# --- limits ---------------------------------------------------------------------------------------


def test_too_few_descriptors_say_how_many_it_takes(nhmtap):
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    error = refusal(nhmtap("stat", "-e", ",".join(["cs"] * 100), "--", "true", preexec_fn=limit))
    assert error["errno"] == "EMFILE"
    assert "100 descriptors (100 events on 1 CPUs and threads)" in error["why"]
    assert "40 may be open" in error["why"]
    assert "ulimit -Hn" in error["remedy"]


@pytest.mark.parametrize("limit", [5, 8, 12, 16, 20, 24, 28, 32])
@pytest.mark.parametrize("command", ["stat", "profile"])
def test_no_limit_of_descriptors_makes_a_run_that_cannot_end(nhmtap, command, limit):
    set_limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    # LeakSanitizer needs some descriptors of its own.
    result = nhmtap(command, "-e", "cs,cs,cs", "-I", "1000", "--", "true", preexec_fn=set_limit,
                    env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
    assert result.status in (0, 2)
    assert (result.status == 0) == (result.err == "")


def test_a_soft_limit_of_descriptors_is_no_hindrance(nhmtap):
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 4096))
    assert nhmtap("stat", "-e", ",".join(["cs"] * 100), "--", "true", preexec_fn=limit).status == 0


def test_the_limit_that_was_raised_is_not_the_commands(nhmtap):
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 4096))
    result = nhmtap("stat", "-e", "cs", "-o", "/dev/null", "--", "sh", "-c",
                    "ulimit -Sn; ulimit -Hn", preexec_fn=limit)
    assert result.out.split() == ["40", "4096"]


def test_a_small_limit_of_locked_memory_is_no_hindrance_here(nhmtap):
    # Since Linux 5.11 BPF memory is charged to the cgroup. Without a ring, nothing else is locked.
    limit = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
    assert nhmtap("profile", "-e", "cs", "-c", "1", "--", "true", preexec_fn=limit).status == 0


def test_a_limit_of_locked_memory_is_named_where_the_kernel_counts_by_it(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
    root = hosts.build(tmp_path / "host", hosts.WITHOUT_PMU)
    error = refusal(run(["strace", "-o", tmp_path / "strace", "-e", "trace=bpf", "-e",
                         "inject=bpf:error=EPERM"], "profile", "--host-root", root, "-e", "cs",
                        "--", "true", preexec_fn=limit))
    assert "locked memory is limited to 64 KiB" in error["why"]
    assert "ulimit -l unlimited" in error["remedy"]


def test_memory_that_the_kernel_lacks_for_bpf_is_no_matter_of_locked_memory(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
    error = refusal(run(["strace", "-o", tmp_path / "strace", "-e", "trace=bpf", "-e", "inject=bpf:error=ENOMEM"],
                        "profile", "-e", "cs", "--", "true", preexec_fn=limit))
    assert "no memory for BPF programs and their tables" in error["why"]
    assert "ulimit -v" in error["remedy"]


# --- what is not there ----------------------------------------------------------------------------


def test_a_process_that_has_gone_is_named(nhmtap):
    gone = subprocess.Popen(["true"])
    gone.wait()
    error = refusal(nhmtap("stat", "-e", "cs", "-p", gone.pid))
    assert error["asked"] == f"process {gone.pid}"
    assert (error["errno"], error["why"]) == ("ESRCH", "there is no such process")


def test_one_process_that_has_gone_refuses_them_all(nhmtap):
    gone = subprocess.Popen(["true"])
    gone.wait()
    with Puppet() as puppet:
        error = refusal(nhmtap("profile", "-e", "cs", "-p", f"{puppet.pid},{gone.pid}"))
    assert error["asked"] == f"process {gone.pid}"


def test_a_cpu_that_does_not_exist_is_named(nhmtap):
    error = refusal(nhmtap("stat", "-e", "cs", "-C", "8000"))
    assert "CPU 8000 does not exist" in error["why"]
    with open("/sys/devices/system/cpu/online", encoding="ascii") as online:
        assert f"online are {online.read().strip()}" in error["remedy"]


def test_a_hardware_event_where_there_is_no_pmu_says_what_to_use(tmp_path):
    error = refusal(injected(tmp_path, "perf_event_open", "ENOENT", "stat", "-e", "cycles", "--",
                             "true"))
    assert "no core PMU" in error["why"] and "cpu-clock" in error["remedy"]


@pytest.mark.parametrize("name, event, files, why, remedy", [
    ("ENOENT", "LLC-prefetches", hosts.NEHALEM, "driver does not have it", "raw code"),
    ("ENOENT", "bpf-output", hosts.WITHOUT_PMU, "kernel does not have it", "perf list"),
    ("EINVAL", "{cycles,instructions}", hosts.NEHALEM, "can't run the group", "smaller"),
    ("EINVAL", "cpu/event=0xc5/p", hosts.OTHER_PMU, "does not sample this event precisely",
     "modifier p"),
    ("EINVAL", "r1c0", hosts.NEHALEM, "type 4, config 0x1c0", "bits"),
    ("EOPNOTSUPP", "cycles:ppp", hosts.OTHER_PMU, "no precise sampling of level 3", "lower it"),
    ("EOPNOTSUPP", "cycles", hosts.WITHOUT_PMU, "no core PMU", "cpu-clock"),
    ("EBUSY", "cycles", hosts.NEHALEM, "another user of the PMU", "NMI watchdog"),
    ("ENODEV", "cs", hosts.WITHOUT_PMU, "went offline", "cpu/online"),
    ("ENOMEM", "cs", hosts.WITHOUT_PMU, "no memory", "memory limit"),
    ("ESRCH", "cs", hosts.WITHOUT_PMU, "has ended", "-C"),
    ("E2BIG", "cs", hosts.WITHOUT_PMU, "too long", ""),
])
def test_each_answer_of_the_kernel_has_its_own_sentence(tmp_path, name, event, files, why, remedy):
    result = injected(tmp_path, "perf_event_open", name, "stat", "-e", event, "--", "true",
                      files=files)
    assert result.status == 2, result.err
    error = result.one("error")
    assert error["errno"] == name
    assert why in error["why"] and remedy in error.get("remedy", ""), error


def test_a_short_period_that_the_pmu_refuses_is_suspected(tmp_path):
    error = refusal(injected(tmp_path, "perf_event_open", "EINVAL", "profile", "-e", "r1c0", "-c",
                             "31", "--", "true", files=hosts.OTHER_PMU))
    assert "period" in error["why"] and "some PMUs refuse short periods" in error["remedy"]


@pytest.mark.parametrize("insists", [[], ["--force"]])
def test_a_period_shorter_than_a_cpus_least_is_refused_with_the_least_before_the_kernel_is_asked(nhmtap, tmp_path, insists):
    root = hosts.build(tmp_path / "host", hosts.NEHALEM)
    error = refusal(nhmtap("profile", "--host-root", root, *insists, "-e", "r1c0", "-c", "31", "--", "true"), status=1)
    assert "below 32" in error["why"] and "-c 32 or more" in error["remedy"]


@pytest.mark.parametrize("when", [1, 2, 3, 4, 5, 6])
def test_a_refusal_at_any_step_of_loading_leaves_one_sentence_and_runs_nothing(tmp_path, when):
    witness = tmp_path / "ran"
    result = injected(tmp_path, "bpf", "E2BIG", "profile", "-e", "cs", "--", "touch", witness,
                      when=f"{when}+")
    error = refusal(result)
    assert "BPF program" in error["asked"]
    assert not witness.exists()


def test_the_second_event_that_is_refused_is_the_one_that_is_named(tmp_path):
    result = injected(tmp_path, "perf_event_open", "EINVAL", "stat", "-e", "cs,page-faults,dummy",
                      "--", "true", when="2")
    assert refusal(result)["asked"] == "event 'page-faults'"


def test_the_command_of_a_refused_run_never_runs(tmp_path):
    witness = tmp_path / "ran"
    refusal(injected(tmp_path, "perf_event_open", "EINVAL", "stat", "-e", "cs", "--", "touch",
                     witness))
    assert not witness.exists()


def test_a_refused_epoll_is_not_taken_for_a_refused_bpf(tmp_path):
    """The loop polls without epoll_ctl(2); libbpf's ring can't."""
    error = refusal(run(["strace", "-o", tmp_path / "strace", "-e", "trace=epoll_ctl", "-e", "inject=epoll_ctl:error=EPERM"],
                        "profile", "-e", "page-faults", "-c", "1", "-a", "--duration", "0.1", "--format", "json"))
    assert "epoll" in error["why"] and "bpf()" not in error["why"] and "epoll" in error["remedy"] + error["why"]


@pytest.mark.parametrize("error", ["EPERM", "ENOSPC"])
@pytest.mark.parametrize("script, reason", [("true", "exited"), ("kill -TERM $PPID; exec sleep 60", "terminated")])
def test_a_run_without_epoll_sees_its_end(tmp_path, error, script, reason):
    """Filters of system calls answer with EPERM, as epoll_ctl(2) does for a regular file."""
    strace = ["strace", "-f", "-o", tmp_path / "strace", "-e", "trace=epoll_ctl", "-e", f"inject=epoll_ctl:error={error}"]
    result = run([*strace, "timeout", "-s", "KILL", "30"], "stat", "-e", "page-faults", "--format", "json", "--", "sh", "-c", script)
    assert result.one("end")["reason"] == reason
    assert "epoll_ctl" in (tmp_path / "strace").read_text()


def test_capabilities_that_cant_be_given_up_are_told(tmp_path):
    result = run(["strace", "-o", tmp_path / "strace", "-e", "trace=capset", "-e", "inject=capset:error=EPERM"],
                 "stat", "-e", "page-faults", "-a", "--duration", "0.1", "--format", "json")
    assert result.status == 0
    assert "capset(2): Operation not permitted" in result.err
    # CAP_DAC_OVERRIDE is only needed for paths of outputs.
    assert "CAP_DAC_OVERRIDE" in result.one("start")["capabilities"]
