# SPDX-License-Identifier: GPL-2.0-only
"""Pid namespaces, with nhmtap and the measured program in the same one or in different ones. A
process is reported by its pid in nhmtap's own namespace. Its code never gets another process's
names, and gets its own wherever its files can be seen."""
import os
import shutil
import subprocess

import pytest
from fifos import open_fifo
from records import frames_of, program
from sessions import until

FAULTS = ["-e", "page-faults:u", "-c", "1"]
NAMES = program("names")
# A new pid namespace with its own /proc, and one that still sees the outer /proc.
INSIDE = ["unshare", "--pid", "--fork", "--mount-proc"]
FOREIGN_PROC = ["unshare", "--pid", "--fork"]
INITIAL = 0xeffffffc  # PROC_PID_INIT_INO, include/linux/proc_ns.h
WITHOUT_BTF = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]


def samples(result, symbol, **members):
    return sum(e["samples"] for e in result.entries(**members) if e["code"].get("symbol") == symbol)


def pids(result, symbol):
    return {e["pid"] for e in result.entries() if e["code"].get("symbol") == symbol}


def said(result):
    """The pids that the programs printed, from their own namespaces."""
    return [int(line.split()[1]) for line in result.said.splitlines() if line.startswith("at ")]


@pytest.mark.parametrize("target", [[], ["-a"]], ids=["command", "all CPUs"])
@pytest.mark.parametrize("without", [[], WITHOUT_BTF], ids=["BTF", "no BTF"])
def test_inside_with_its_program_all_pids_are_the_namespaces(nhmtap, tmp_path, target, without):
    result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, *target, "--by", "symbol,pid,tid", "--", NAMES,
                         "here=200", before=without + INSIDE)
    pid, = said(result)
    assert pid < 100, "its namespace is new"
    assert samples(result, "here", pid=pid, tid=pid) == 200
    end = result.one("end")
    assert end["command"]["pid"] == pid
    assert target or result.one("start")["target"]["process.pid"] == pid
    assert target or not any(e["pid"] != pid for e in result.entries())
    assert result.one("start")["resource"]["process.pid"] == 1
    assert end["names"]["unnamed"]["no_mapping"] == end["names"]["unnamed"]["no_file"] == 0
    assert target or end["names"]["unnamed"]["no_pid"] == 0


@pytest.mark.parametrize("before", [[], INSIDE], ids=["outside", "inside"])
def test_a_program_in_a_deeper_namespace_has_its_number_in_nhmtaps(nhmtap, tmp_path, before):
    script = f"{NAMES} child=100 here=200"
    result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, "--by", "symbol,pid", "--", "unshare", "--pid",
                         "--fork", "sh", "-c", script + "; true", before=before)
    own, = said(result)
    assert own == 2, "behind its shell"
    seen = pids(result, "here")
    assert samples(result, "here") == 300 and len(seen) == 2 and own not in seen and 0 not in seen
    assert result.one("end")["names"]["unnamed"]["no_pid"] == 0


def test_without_the_kernels_types_a_deeper_task_has_no_number_and_no_name(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, "--by", "symbol,pid", "--", "sh", "-c",
                         f"{NAMES} here=100; unshare --pid --fork {NAMES} here=200",
                         before=WITHOUT_BTF + INSIDE)
    assert samples(result, "here") == 100 and 0 not in pids(result, "here")
    assert sum(e["samples"] for e in result.entries(pid=0)) >= 200
    assert result.one("end")["names"]["unnamed"]["no_pid"] >= 200


def test_stacks_inside_are_those_of_the_namespaces_processes(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, "-g", "--by", "symbol,pid", "--", NAMES, "here=200",
                         before=INSIDE)
    profile, = result.of("profile")
    frames = frames_of(result.records, profile)
    found = {frames[e["stack"][0]].get("symbol"): e["samples"] for e in profile["entries"] if e["samples"] >= 200}
    assert found == {"here": 200}


def test_processes_inside_are_followed_for_unwinding_as_outside(nhmtap, tmp_path):
    ways = []
    for before in ([], INSIDE):
        result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, "-g", "--unwind", "tables", "--by", "symbol", "--",
                             NAMES, "here=200", "child=100", before=before)
        profile, = result.of("profile")
        frames = frames_of(result.records, profile)
        assert sum(e["samples"] for e in profile["entries"]
                   if e["stack"] and frames[e["stack"][0]].get("symbol") == "here") == 300
        ways.append(result.one("start")["unwind"]["follow"])
    assert ways[0] == ways[1]


def test_loads_inside_are_those_of_the_namespaces_processes(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "mem", *FAULTS, "--by", "symbol,pid,tid", "--", NAMES, "here=200",
                         before=INSIDE)
    pid, = said(result)
    entry, = [e for e in result.entries("mem") if e["code"].get("symbol") == "here"]
    assert (entry["samples"], entry["pid"], entry["tid"]) == (200, pid, pid)


def test_a_process_is_named_by_its_number_inside(nhmtap, tmp_path):
    script = f"""mkfifo {tmp_path}/go; exec 3<> {tmp_path}/go
        {NAMES} wait here=200 <&3 > {tmp_path}/said & pid=$!
        "$@" -p $pid & nhmtap=$!
        while ! test -s {tmp_path}/out; do sleep 0.01; done
        echo >&3; wait $nhmtap"""
    result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, "--by", "symbol,pid",
                         before=[*INSIDE, "sh", "-c", script, "sh"])
    pid = int((tmp_path / "said").read_text().split()[1])
    assert result.one("start")["target"]["pids"] == [pid]
    assert samples(result, "here", pid=pid) == 200


@pytest.fixture
def twin(tmp_path):
    """A program that touches 100 pages in other() when it is told to. It has no function here()."""
    source = """#include <stdio.h>
        #include <sys/mman.h>
        #include <unistd.h>
        void other(volatile char *p) { *p = 1; }
        int main(void) {
            char *p = mmap(0, 100 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), line[9];
            madvise(p, 100 * 4096, MADV_NOHUGEPAGE);
            printf("at %d\\n", getpid());
            fflush(stdout);
            fgets(line, 9, stdin);
            for (int i = 0; i < 100; i++) other(p + i * 4096);
            return puts("done") < 0;
        }"""
    path = tmp_path / "twin"
    subprocess.run(["gcc", "-w", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
    return path


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_of_two_processes_with_one_number_each_goes_by_its_own_names_or_by_none(nhmtap, tmp_path, twin, where):
    """One program is in this namespace. Another one is in a new namespace, with the same pid by
    ns_last_pid."""
    profile = nhmtap.command("profile", *FAULTS, "-a", "--by", "symbol,pid", "-o", tmp_path / "out", "--", "sh", "-c",
                             f"touch {tmp_path}/begun; while ! test -e {tmp_path}/done; do sleep 0.05; done")
    os.mkfifo(tmp_path / "go")
    script = f"""echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid
        {twin} < {tmp_path}/go > {tmp_path}/said & twin=$!
        shift; "$@"; wait $twin"""
    with subprocess.Popen([NAMES, "wait", "here=200"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        process.stdout.readline()
        container = subprocess.Popen([*INSIDE, "sh", "-c", script, "sh", str(process.pid),
                                      *(profile if where == "inside" else ["true"])])
        other = subprocess.Popen(profile) if where == "outside" else None
        with open_fifo(tmp_path / "go", "w") as go:
            until(lambda: (tmp_path / "said").exists() and (tmp_path / "said").read_text())
            until((tmp_path / "begun").exists)
            process.communicate("\n")
            go.write("\n")
        if where == "outside":
            assert container.wait(60) == 0
        else:
            until(lambda: (tmp_path / "said").read_text().endswith("done\n"))
        (tmp_path / "done").touch()
        assert (other or container).wait(60) == 0
        container.wait(60)
    assert (tmp_path / "said").read_text() == f"at {process.pid}\ndone\n"
    result = type(nhmtap("schema", "end"))(0, (tmp_path / "out").read_text(encoding="utf-8"), "")
    own = [e for e in result.entries() if e["code"].get("module") == str(twin) and e["code"].get("symbol") == "other"]
    assert sum(e["samples"] for e in own) == 100
    if where == "outside":
        assert samples(result, "here", pid=process.pid) == 200 and process.pid not in {e["pid"] for e in own}
        return
    assert {e["pid"] for e in own} == {process.pid}
    assert samples(result, "here") == 0, "its process is in no namespace of nhmtap's"
    assert result.one("end")["names"]["unnamed"]["no_pid"] >= 200


def test_with_the_proc_of_another_namespace_names_are_right_all_the_same(nhmtap, tmp_path):
    copy = str(shutil.copy(NAMES, tmp_path / "copy"))
    result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, "-a", "--by", "symbol,pid", "--", "sh", "-c",
                         f"{NAMES} here=100; exec {copy} here=200", before=FOREIGN_PROC)
    first, second = said(result)
    assert second == result.one("end")["command"]["pid"] < first
    assert (samples(result, "here", pid=first), samples(result, "here", pid=second)) == (100, 200)


def test_with_the_proc_of_another_namespace_no_process_is_measured_by_its_number(nhmtap):
    result = nhmtap("profile", *FAULTS, "-p", "1", before=FOREIGN_PROC)
    assert result.status == 2
    error = result.one("error")
    assert "/proc is another pid namespace's" in error["why"] and "--mount-proc" in error["remedy"]


@pytest.mark.parametrize("before, value, lost", [
    ([], "initial", ""), (INSIDE, "nested", "have no pid"), (FOREIGN_PROC, "not that of /proc", "by its id"),
    (WITHOUT_BTF + INSIDE, "nested", "in deeper ones")])
def test_doctor_says_what_is_lost_in_a_namespace(nhmtap, before, value, lost):
    result = nhmtap("doctor", "--need", "software", before=before)
    record = result.one("permission", name="pid_namespace")
    if not before and os.stat("/proc/self/ns/pid").st_ino != INITIAL:
        value, lost = "nested", "have no pid"
    assert (result.status, record["value"], record["ok"]) == (0, value, not lost)
    assert lost in record.get("why", "")
