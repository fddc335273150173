# SPDX-License-Identifier: GPL-2.0-only
"""What nhmtap reports about itself: -v, --version -v, and why there is no count."""
import json
import os
import re
import subprocess

from puppet import Puppet
from records import FILE, NHMTAP, parse, program

LINE = re.compile(r"nhmtap: \d+\.\d{3} s: (.+)")


def noted(result):
    """The notes in order. stderr holds nothing else."""
    lines = result.err.splitlines()
    assert all(map(LINE.fullmatch, lines)), result.err
    return [LINE.fullmatch(line)[1] for line in lines]


def in_order(notes, *patterns):
    """Whether every pattern is found, each after the one before."""
    rest = iter(notes)
    return all(any(re.search(pattern, note) for note in rest) for pattern in patterns)


def test_verbose_says_what_is_done(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", "-v", "-e", "cpu-clock", "-F", "500", "--", program("demo"))
    pid = result.one("start")["target"]["process.pid"]
    assert in_order(noted(result), rf"^records go to {tmp_path}/out as json$", "^nhmtap .*, libbpf v", "CPUs .* online",
                    "^perf_event_paranoid .*, capabilities 0x",
                    r"^opened cpu-clock: type 1, config 0x0, .*frequency 500,.* on 1 of 1",
                    r"^loaded 1 of bpf/profile.bpf.c, keys comm,ip,pid$", "^listening to the kernel's notes",
                    "^attached", rf"^process {pid} runs .*/demo$", f"^process {pid} has ended, status 0$",
                    "^ending: exited$")


def test_without_it_nothing_is_said(nhmtap):
    assert nhmtap("stat", "-e", "page-faults", "--", "true").err == ""


def test_it_says_who_ended_a_run(nhmtap):
    process = nhmtap.attach("stat", "-v", "-e", "page-faults", "-a")
    assert in_order(noted(nhmtap.interrupt(process)), r"^signal 2 from process \d+$", "^ending: interrupted$")


def test_it_says_that_a_process_has_gone(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-v", "-e", "page-faults", "-p", puppet.pid)
    out, err = process.communicate(timeout=120)
    assert json.loads(out.splitlines()[-1])["type"] == "end" and "ending: exited" in err


def test_a_table_says_that_the_processes_have_ended(nhmtap):
    with Puppet() as puppet:
        process = subprocess.Popen(nhmtap.command("stat", "-v", "--format", "table", "-e", "page-faults", "-p", puppet.pid),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while "opened page-faults" not in process.stderr.readline():
            assert process.poll() is None
    out, _ = process.communicate(timeout=120)
    assert "# the processes that were measured have ended" in out.splitlines()
    assert "have ended" not in nhmtap("stat", "--format", "table", "-e", "page-faults", "--", "true").out


def test_it_says_that_the_reader_has_gone():
    done = subprocess.run(["sh", "-c", f"{NHMTAP} stat -v -a -e page-faults -I 20 | head -1 > /dev/null"],
                          capture_output=True, text=True, timeout=120, check=True)
    assert "the reader of stdout has gone" in done.stderr


def test_a_session_says_the_same(nhmtap, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"activities": [
        {"name": "faults", "command": "stat", "event": "page-faults"},
        {"name": "cpu", "command": "profile", "event": "cpu-clock"}]}))
    result = nhmtap("run", "-v", config, "--", program("puppet"), "spin=200", "exit=0")
    assert in_order(noted(result), "^opened page-faults:", "^opened cpu-clock:", "runs .*/puppet$", "^ending: exited$")


def test_the_version_names_libraries_and_what_the_kernel_has(nhmtap):
    short, full = nhmtap("--version"), nhmtap("--version", "-v")
    assert full.out.startswith(short.out) and len(short.out.splitlines()) == 1
    told = {line.split()[0]: line for line in full.out.splitlines()}
    for library in ("libbpf", "libperf", "libjansson", "libdw", "zlib", "protobuf-c", "liblzma"):
        assert re.search(r"\d+\.\d+", told[library]), library
    assert "BTF" in told["kernel"] and "perf_event_paranoid" in told["kernel"]
    assert "BPF_SYSCALL=" in told["built"] and "software" in told["PMUs"]


def test_the_version_as_a_record_says_the_same(nhmtap):
    record, = parse(nhmtap("--version", "--json").out)
    full = nhmtap("--version", "-v").out
    assert f"nhmtap {record['version']}\n" in full and f"build id      {record['build_id']}\n" in full
    assert all(f"{name:<13} {version}\n" in full for name, version in record["libraries"].items())
    assert f"kernel        {record['kernel']['release']}, " in full and "software" in record["kernel"]["pmus"]
    notes = subprocess.run(["readelf", "--notes", FILE], capture_output=True, text=True, check=True).stdout
    assert record["build_id"] in notes


def test_a_table_says_why_there_is_no_count(nhmtap, tmp_path):
    os.mkfifo(tmp_path / "control")
    command = nhmtap.command("stat", "--delay", "-1", "--control", f"fifo:{tmp_path}/control", "-a", "-e",
                             "page-faults", "--format", "table")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        (tmp_path / "control").write_text("stop\n")
        said, _ = process.communicate(timeout=120)
    assert re.search(r"not counted +page-faults  \(counting was switched off", said)
