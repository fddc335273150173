# SPDX-License-Identifier: GPL-2.0-only
"""Targets: commands, processes with their threads, CPUs."""
import os
import subprocess

import cgroups
import pytest
from fifos import open_fifo
from puppet import Puppet, command, ids, pinned, touched, wait_asleep
from records import program
from running import MISSED, missed, total

EVERY_FAULT = ["-e", "page-faults", "-c", "1"]


def in_touch(result, where, **keys):
    return sum(entry["samples"] for entry in result.entries(**keys) if where(entry["ip"]))


def test_all_threads_that_a_process_has_are_counted(nhmtap):
    with Puppet(workers=5) as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults", "-p", puppet.pid)
        for worker in range(5):
            puppet.do(f"worker={worker},{100 + worker}")
        puppet.do("faults=7")
        result = nhmtap.interrupt(process)
    assert result.count("page-faults") == 100 + 101 + 102 + 103 + 104 + 7


def test_threads_of_a_process_that_are_there_and_to_come_are_sampled(nhmtap):
    with Puppet(workers=2) as puppet:
        process = nhmtap.attach("profile", *EVERY_FAULT, "--by", "tid,ip", "-p", puppet.pid)
        there = puppet.do("worker=1,300")
        to_come = puppet.do("thread=200")
        result = nhmtap.interrupt(process)
    assert in_touch(result, puppet.touched, tid=there) == 300
    assert in_touch(result, puppet.touched, tid=to_come) == 200
    assert in_touch(result, puppet.touched) == 500


def test_children_of_a_process_that_are_to_come_are_sampled(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("profile", *EVERY_FAULT, "--by", "pid,ip", "-p", puppet.pid)
        child = puppet.do("fork=200")
        result = nhmtap.interrupt(process)
    assert in_touch(result, puppet.touched, pid=child) == 200


def test_several_processes_are_measured_together_and_no_others(nhmtap):
    with Puppet() as first, Puppet() as second, Puppet() as other:
        process = nhmtap.attach("profile", *EVERY_FAULT, "--by", "pid", "-p",
                                f"{first.pid},{second.pid}")
        first.do("faults=100")
        other.do("faults=1000")
        second.do("faults=10")
        result = nhmtap.interrupt(process)
    assert {entry["pid"]: entry["samples"] for entry in result.entries()} == {
        first.pid: 100, second.pid: 10}
    assert result.one("start")["target"]["pids"] == [first.pid, second.pid]


def test_the_run_ends_when_the_last_process_has_ended(nhmtap):
    with Puppet() as first, Puppet() as second:
        process = nhmtap.attach("stat", "-e", "page-faults", "-p", f"{first.pid},{second.pid}")
        first.do("faults=100")
        first.end()
        second.do("faults=10")
        assert process.poll() is None
        second.end()
        result = nhmtap.finish(process)
    assert (result.status, result.one("end")["reason"]) == (0, "exited")
    assert result.count("page-faults") >= 110  # and those of their exits


def test_a_process_that_ends_while_it_is_attached_to_ends_the_run(nhmtap, tmp_path):
    # The kernel's answer for a process that has ended before it is waited for.
    with Puppet() as puppet:
        process = nhmtap.start("stat", "-e", "page-faults", "-p", puppet.pid, before=[
            "strace", "-o", tmp_path / "strace", "-e", "trace=pidfd_open", "-e",
            "inject=pidfd_open:error=ESRCH"], env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
        result = nhmtap.finish(process)
    assert (result.status, result.one("end")["reason"]) == (0, "exited")


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
@pytest.mark.parametrize("option", ["-p", "-t"])
def test_where_the_kernel_refuses_descriptors_of_processes_the_end_is_seen_all_the_same(nhmtap, tmp_path, option, error):
    # As an old seccomp profile does, or an old kernel.
    with Puppet() as first, Puppet() as second:
        process = nhmtap.attach("stat", "-e", "page-faults", option, f"{first.pid},{second.pid}", before=[
            "strace", "-o", tmp_path / "strace", "-e", "trace=pidfd_open", "-e",
            f"inject=pidfd_open:error={error}"], env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
        first.end()
        second.do("faults=100")
        assert process.poll() is None
        second.end()
        result = nhmtap.finish(process)
    assert f"{error} " in (tmp_path / "strace").read_text()
    assert (result.status, result.one("end")["reason"]) == (0, "exited")
    assert result.count("page-faults") >= 100


@pytest.mark.parametrize("option", ["-p", "-t"])
def test_without_descriptors_of_processes_one_that_nobody_waits_for_has_ended(nhmtap, tmp_path, option):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults", option, puppet.pid, before=[
            "strace", "-o", tmp_path / "strace", "-e", "trace=pidfd_open", "-e",
            "inject=pidfd_open:error=EPERM"], env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
        puppet.process.stdin.close()
        os.waitid(os.P_PID, puppet.pid, os.WEXITED | os.WNOWAIT)
        result = nhmtap.finish(process)
    assert (result.status, result.one("end")["reason"]) == (0, "exited")


def test_a_pinned_event_of_a_command_that_sleeps_is_not_said_to_have_found_its_counters_held(nhmtap):
    """The kernel's own events need no counter, and what has had one is counted again when the command runs."""
    result = nhmtap("stat", "-e", "{minor-faults,task-clock}:D,page-faults:uD", "-I", "20", "--", "sleep", "0.1")
    asleep = [c for c in result.of("count") if c["status"] == "not_counted"]
    assert {c["why"] for c in asleep} == {"its target never ran"} and len(asleep) >= 3


@pytest.fixture
def zombie():
    """A process that has ended, and for which nobody has waited."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid


@pytest.mark.parametrize("options", [[], ["--per", "thread"], ["-I", "20"], ["-M", "cpus_utilized"]])
@pytest.mark.parametrize("command_", [[], ["--", "sleep", "0.1"]])
def test_a_process_that_has_ended_before_is_not_counted_and_says_so(nhmtap, zombie, command_, options):
    result = nhmtap("stat", "-p", zombie, "-e", "task-clock,page-faults", *options, "--expect", "page-faults<1", *command_)
    assert {(c["event"].partition(":")[0], c["status"], c["why"]) for c in result.of("count")} == {
        (name, "not_counted", "its target never ran") for name in ("task-clock", "page-faults")}
    outcome = result.one("expectation")
    assert (result.status, outcome["outcome"], outcome["why"]) == (3, "cannot_tell", "its target never ran")
    said = [line.split(": ", 1)[1] for line in result.err.splitlines() if ": not counted: " in line]
    assert sorted(said) == ["task-clock, page-faults: not counted: its target never ran"]


@pytest.mark.parametrize("first", [True, False])
def test_an_event_that_only_some_executions_count_is_not_said_to_be_uncounted(nhmtap, cgroup, tmp_path, first):
    """Only the first execution, or only the later ones, run in the cgroup that is measured."""
    path, folder = cgroup
    script = f"if test {'!' if first else ''} -e {tmp_path}/ran; then echo $$ > {folder}/cgroup.procs; fi; touch {tmp_path}/ran; true"
    result = nhmtap("stat", "-r", "3", "-G", path, "-e", "page-faults", "--", "sh", "-c", script)
    assert {c["status"] for c in result.of("count")} == {"counted", "not_counted"} and "not counted" not in result.err


def test_a_pattern_that_no_cgroup_fits_says_that_nothing_was_counted(nhmtap):
    count = nhmtap("stat", "-G", "no_cgroup_is_called_so*", "-e", "task-clock", "--", "sleep", "0.1").one("count")
    assert (count["status"], count["why"]) == ("not_counted", "nothing ran in its cgroups")


def test_attaching_leaves_the_process_as_it_was(nhmtap):
    with Puppet() as puppet:
        nhmtap.interrupt(nhmtap.attach("profile", *EVERY_FAULT, "-p", puppet.pid))
        assert puppet.do("faults=10") == puppet.pid
        assert puppet.end() == 0


def test_all_cpus_see_processes_that_are_no_children(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("profile", *EVERY_FAULT, "--by", "pid,ip", "-a")
        puppet.do("faults=1000")
        result = nhmtap.interrupt(process)
    assert in_touch(result, puppet.touched, pid=puppet.pid) == 1000


def test_all_cpus_are_the_cpus_that_are_online(nhmtap):
    result = nhmtap("stat", "-e", "cpu-clock", "-a", "--duration", "0.2")
    with open("/sys/devices/system/cpu/online", encoding="ascii") as online:
        assert result.one("start")["target"]["cpus"] == online.read().strip()
    record = result.one("count")
    # Each CPU's event is enabled all the time, apart from the moment of enabling them one by one.
    assert record["enabled_ns"] >= 0.99 * 0.2e9 * os.sysconf("SC_NPROCESSORS_ONLN")


@pytest.mark.parametrize("which", [min, max])
def test_a_cpu_sees_what_runs_there_and_nothing_else(nhmtap, which):
    here = which(os.sched_getaffinity(0))
    with Puppet(before=pinned(here)) as puppet:
        process = nhmtap.attach("profile", *EVERY_FAULT, "--by", "pid,cpu,ip", "-C", here)
        puppet.do("faults=1000")
        result = nhmtap.interrupt(process)
    assert in_touch(result, puppet.touched, pid=puppet.pid) == 1000
    assert {entry["cpu"] for entry in result.entries()} == {here}
    assert result.one("start")["target"] == {"cpus": str(here)}


def test_another_cpu_does_not_see_it(nhmtap):
    cpus = sorted(os.sched_getaffinity(0))
    with Puppet(before=pinned(cpus[0])) as puppet:
        others = f"{cpus[-1]}"
        process = nhmtap.attach("profile", *EVERY_FAULT, "--by", "pid,ip", "-C", others)
        puppet.do("faults=1000")
        result = nhmtap.interrupt(process)
    assert in_touch(result, puppet.touched, pid=puppet.pid) == (0 if len(cpus) > 1 else 1000)


def test_a_command_bounds_the_time_for_which_cpus_are_measured(nhmtap, tmp_path):
    with Puppet() as puppet:
        result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "pid,ip", "-a",
                             "--", *command("faults=500", "exit=6"))
        where = touched(result.said)
        mine, = ids(result.said)
        assert in_touch(result, where, pid=mine) == 501
        assert puppet.pid not in {entry["pid"] for entry in result.entries()}
    assert result.status == 6
    target = result.one("start")["target"]
    assert target["cpus"] and target["process.command_args"][1:] == ["faults=500", "exit=6"]


@pytest.mark.parametrize("command_, options", [("stat", ["-p"]), ("stat", ["-t"]), ("profile", ["-p"]),
                                               ("profile", ["-t"])])
def test_a_command_says_how_long_processes_are_measured(nhmtap, tmp_path, command_, options):
    """As perf stat -p PID -- COMMAND does: the command is not measured itself, and its end is the
    run's, whether the target is still there or not. It reads a FIFO that the test closes."""
    os.mkfifo(tmp_path / "fifo")
    with Puppet() as puppet:
        process = nhmtap.attach(command_, *(EVERY_FAULT if command_ == "profile" else EVERY_FAULT[:2]),
                                *options, puppet.pid, "--", "sh", "-c", f"cat {tmp_path}/fifo; exit 6")
        with open_fifo(tmp_path / "fifo", "w"):
            puppet.do("faults=500")
            counted = puppet.pid
            assert process.poll() is None
        result = nhmtap.finish(process)
    assert (result.status, result.one("end")["reason"], result.one("end")["command"]["exit_code"]) == (6, "exited", 6)
    assert total(result) == 500
    target = result.one("start")["target"]
    assert target["pids" if options == ["-p"] else "tids"] == [counted]
    assert target["process.command_args"][0] == "sh"


def test_a_command_goes_on_being_waited_for_when_the_processes_have_ended(nhmtap, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults", "-I", "50", "-p", puppet.pid, "--",
                                "sh", "-c", f"cat {tmp_path}/fifo; exit 6")
        puppet.do("faults=500")
    with open_fifo(tmp_path / "fifo", "w"):
        for _ in range(3):  # intervals go on
            process.began += process.stdout.readline()
        assert process.poll() is None
    result = nhmtap.finish(process)
    assert result.status == 6
    assert total(result) >= 500  # and those of its exit


# --- a first thread that has ended ----------------------------------------------------------------


class Leaderless:
    """tests/programs/leaderless.c"""

    def __init__(self, before=()):
        self.process = subprocess.Popen([*before, program("leaderless")], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        _, self.pid, self.tid = map(int, self.process.stdout.readline().replace("ready", "0").split())
        self.touch(1)  # its buffers are there now
        wait_asleep(self.tid)

    def touch(self, pages):
        print(pages, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "done\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=240)
        self.process.stdout.close()


TARGETS = ["-p {pid}", "-t {tid}", "-p {tid}", "-p {pid},{tid}", "-G {cgroup}", "-a"]


@pytest.mark.parametrize("target", TARGETS[:-1])
def test_a_process_whose_first_thread_has_ended_is_counted(nhmtap, cgroup, target):
    with Leaderless(before=cgroups.inside(cgroup[1])) as threads:
        process = nhmtap.attach("stat", "-e", "page-faults", *target.format(**vars(threads), cgroup=cgroup[0]).split())
        threads.touch(300)
        result = nhmtap.interrupt(process)
    assert result.count("page-faults") == 300


@pytest.mark.parametrize("target", TARGETS)
def test_a_process_whose_first_thread_has_ended_has_names(nhmtap, cgroup, target):
    with Leaderless(before=cgroups.inside(cgroup[1])) as threads:
        process = nhmtap.attach("profile", *EVERY_FAULT, "--by", "pid,tid,comm,symbol,cgroup",
                                *target.format(**vars(threads), cgroup=cgroup[0]).split())
        threads.touch(300)
        result = nhmtap.interrupt(process)
    entry, = (entry for entry in result.entries(pid=threads.pid) if entry["code"].get("symbol") == "touch")
    assert (entry["samples"], entry["tid"], entry["comm"], entry["cgroup"]) == (300, threads.tid, "leaderless", cgroup[0])
    assert entry["code"]["module"] == program("leaderless")


@pytest.mark.parametrize("target", ["-p {pid}", "-a"])
def test_a_process_whose_first_thread_has_ended_has_stacks(nhmtap, tmp_path, target):
    with Leaderless() as threads:
        process = nhmtap.attach("profile", *EVERY_FAULT, "--by", "pid,stack", "--unwind", "tables", "-o",
                                f"folded={tmp_path}/folded", "-o", "json=-", *target.format(**vars(threads)).split())
        threads.touch(300)
        nhmtap.interrupt(process)
    lines = (tmp_path / "folded").read_text().splitlines()  # with -a other tests' threads are among them
    assert sum(int(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{threads.pid};") and ";serve;touch" in line) == 300


@pytest.mark.parametrize("command_", ["stat", "profile"])
def test_a_run_ends_with_the_last_thread_of_a_process(nhmtap, command_):
    with Leaderless() as threads:
        process = nhmtap.attach(command_, "-e", "page-faults", "-p", threads.pid)
        threads.touch(300)
        assert process.poll() is None
    result = nhmtap.finish(process)
    assert (result.status, result.one("end")["reason"]) == (0, "exited")


def test_a_first_thread_that_has_ended_is_refused_by_itself(nhmtap):
    with Leaderless() as threads:
        result = nhmtap("stat", "-e", "page-faults", "-t", threads.pid)
    assert result.status == 2 and "there is no such thread" in result.err


# --- a thread that takes the id of another --------------------------------------------------------


class Successor(Puppet):
    """tests/programs/successor.c, whose second thread becomes a puppet."""

    def __init__(self):
        self.process = subprocess.Popen([program("successor"), *command()], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        _, self.pid, self.tid = map(int, self.process.stdout.readline().replace("ready", "0").split())
        wait_asleep(self.tid)

    def succeed(self):
        """Returns the range of the puppet's touch()."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return touched(self.process.stdout.readline())


@pytest.mark.parametrize("target", ["-p {pid}", "-p {tid}", "-t {tid}", "-t {tid},{pid}"])
def test_a_thread_that_executes_a_program_and_gets_the_id_of_another_is_still_measured(nhmtap, target):
    with Successor() as threads:
        names = target.format(**vars(threads)).split()
        counting = nhmtap.attach("stat", "-e", "page-faults", *names)
        sampling = nhmtap.attach("profile", *EVERY_FAULT, "--by", "ip", *names)
        where = threads.succeed()
        threads.do("faults=3000")
        results = [nhmtap.interrupt(process) for process in (counting, sampling)]
    assert [result.one("end")["reason"] for result in results] == ["interrupted"] * 2
    assert not any(result.of("warning") for result in results)
    assert results[0].count("page-faults") >= 3001
    assert in_touch(results[1], where) == 3001  # and the one of its start


@pytest.mark.parametrize("interval", [[], ["-I", "60000"]])
def test_a_thread_whose_id_another_has_got_is_said_to_have_ended(nhmtap, interval):
    with Successor() as threads:
        process = nhmtap.attach("stat", "-e", "page-faults", "-t", threads.pid, *interval)
        threads.succeed()
        threads.do("faults=3000")
        result = nhmtap.interrupt(process)
    warning = result.one("warning")
    assert (warning["cause"], warning["remedy"]) == ("not_followed", "count the process (-p)")
    assert f"thread {threads.pid} has ended" in warning["why"] and warning["why"] in result.err
    assert result.count("page-faults") < 100


# --- the same thing named twice -------------------------------------------------------------------


@pytest.mark.parametrize("command_", [["stat", "-e", "page-faults"], ["profile", *EVERY_FAULT]], ids=["stat", "profile"])
@pytest.mark.parametrize("names", ["-p {pid},{pid}", "-p {tid},{pid}", "-p {pid},{tid}", "-t {tid},{tid}",
                                   "-t {tid},{pid},{tid}", "-p {pid},{other},{pid}"])
def test_what_is_named_twice_is_measured_once(nhmtap, command_, names):
    with Puppet(workers=1) as puppet, Puppet() as other:
        tid = next(int(tid) for tid in os.listdir(f"/proc/{puppet.pid}/task") if int(tid) != puppet.pid)
        process = nhmtap.attach(*command_, *names.format(pid=puppet.pid, tid=tid, other=other.pid).split())
        assert puppet.do("worker=0,300") == tid
        result = nhmtap.interrupt(process)
    assert total(result) == 300


@pytest.mark.parametrize("command_", [["stat", "-e", "page-faults"], ["profile", *EVERY_FAULT]], ids=["stat", "profile"])
@pytest.mark.parametrize("names", [
    "{0}{0},{0}/", "{0},/{0}", "{0}/../{1},{0}", "/.{0}/./,{0}", "{mount}{0},{0}", "{0},{0}*", "{0}*,{0}",
    "{0}*,{0}*,/{0}*", "{0}*,{0}*/in*", "{0}*/in*,{0}*", "{0}**,{0}/in**"])
def test_a_cgroup_of_several_spellings_is_measured_once(nhmtap, cgroup, command_, names):
    path, folder = cgroup
    os.mkdir(folder + "/inner")
    names = names.replace("{0}{0}", "{0}").format(path, path[1:], mount=cgroups.mount())
    with Puppet(before=cgroups.inside(folder + "/inner")) as puppet:
        process = nhmtap.attach(*command_, "-I", "60000", "-G", names)
        # What patterns find is told when it is measured, after the start.
        while all("*" in name for name in names.split(",")) and '"appeared"' not in process.began:
            process.began += os.read(process.stdout.fileno(), 1).decode()
        puppet.do("faults=300")
        result = nhmtap.interrupt(process)
    end = result.one("end").get("samples")
    lost = sum(end["lost"].values()) if end and "*" in names else 0
    assert total(result) - missed(result, "page-faults") <= 300 <= total(result) + lost


# The last one alone was measured.
@pytest.mark.parametrize("command_", [["stat", "-e", "page-faults"], ["profile", *EVERY_FAULT]], ids=["stat", "profile"])
@pytest.mark.parametrize("names", ["-p {one} -p {two}", "-p {two} -p {one}", "-t {one} -t {two}", "-p {one} -p {one},{two}"])
def test_a_target_that_is_given_several_times_is_all_of_them(nhmtap, command_, names):
    with Puppet() as one, Puppet() as two:
        process = nhmtap.attach(*command_, *names.format(one=one.pid, two=two.pid).split())
        one.do("faults=300")
        two.do("faults=4000")
        result = nhmtap.interrupt(process)
    assert total(result) == 4300


@pytest.mark.parametrize("command_", [["stat", "-e", "page-faults"], ["profile", *EVERY_FAULT]], ids=["stat", "profile"])
def test_cgroups_that_are_given_one_by_one_are_measured_together(nhmtap, cgroup, command_):
    path, folder = cgroup
    for name in ("a", "b"):
        os.mkdir(f"{folder}/{name}")
    with Puppet(before=cgroups.inside(folder + "/a")) as one, Puppet(before=cgroups.inside(folder + "/b")) as two:
        process = nhmtap.attach(*command_, "-G", path + "/a", "-G", path + "/b", "-G", f"{path}/./a/")
        one.do("faults=300")
        two.do("faults=4000")
        result = nhmtap.interrupt(process)
    assert total(result) == 4300


def test_cpus_and_keys_that_are_given_one_by_one_are_all_taken(nhmtap):
    result = nhmtap("stat", "-e", "cpu-clock", "-C", "0", "-C", "1", "--per", "cpu", "--per", "node", "--duration", "0.05")
    assert result.one("start")["target"]["cpus"] == "0-1"
    assert [(record["cpu"], record["node"]) for record in result.of("count")] == [(0, 0), (1, 0)]


@pytest.mark.parametrize("names", ["{0},{0}/", "{0},/{0}*", "{0}*,{0}/../{1}", "{0}*,{0}*"])
def test_cgroups_counted_each_by_itself_are_counted_once(nhmtap, cgroup, names):
    path, folder = cgroup
    with Puppet(before=cgroups.inside(folder)) as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults", "--for-each-cgroup", names.format(path, path[1:]))
        puppet.do("faults=300")
        result = nhmtap.interrupt(process)
    either = missed(result, "page-faults")
    values = [record["value"] for record in result.of("count") if record["cgroup"] != MISSED]
    assert len(values) == 1 and values[0] <= 300 <= values[0] + either


def test_the_commands_output_and_input_are_its_own(nhmtap, tmp_path):
    with open(tmp_path / "out", "w", encoding="utf-8") as out:
        done = subprocess.run(nhmtap.command("stat", "-e", "cs", "-o", out.name, "--", "tr", "a-z",
                                             "A-Z"), input=b"marionette", capture_output=True,
                              check=True)
    assert (done.stdout, done.stderr) == (b"MARIONETTE", b"")


def test_options_behind_the_command_are_the_commands(nhmtap):
    result = nhmtap("stat", "-e", "cs", "sh", "-c", "exit 4")
    assert result.status == 4
    assert result.one("start")["target"]["process.command_args"] == ["sh", "-c", "exit 4"]


def test_the_command_gets_the_signal_mask_that_nhmtap_was_given(nhmtap):
    result = nhmtap("stat", "-e", "cs", "-o", "/dev/null", "--", "grep", "-E",
                    "^(SigBlk|SigIgn)", "/proc/self/status")
    here = subprocess.run(["grep", "-E", "^(SigBlk|SigIgn)", "/proc/self/status"],
                          capture_output=True, text=True, check=True).stdout
    assert result.out == here


def test_the_command_inherits_no_descriptor_of_nhmtap(nhmtap):
    result = nhmtap("profile", *EVERY_FAULT, "-o", "/dev/null", "--", "ls", "/proc/self/fd")
    assert result.out.split() == ["0", "1", "2", "3"]  # 3 is ls's own
