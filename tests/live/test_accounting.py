# SPDX-License-Identifier: GPL-2.0-only
"""Every expected sample is in the entries or is counted as lost, by cause. Every record that a test reads is
checked for this (records.py). Here the sums are compared with independent counts."""
import os
import signal
import subprocess

import pytest
import remarks
from puppet import Puppet, command, pinned, profile_while_stopped, stop, wait_asleep
from records import held, parse, program

SLOTS = 8192  # of each generation of a CPU's table: TABLE_SLOTS in bpf/shared.h


def lost(record):
    return sum(record["samples"]["lost"].values())


# --- a twin: the same event, counted by perf stat at the same time --------------------------------


class Twin:
    """perf stat on a process. It counts once the constructor has returned."""

    def __init__(self, pid, event, output):
        self.output = output
        control, acknowledgement = os.pipe(), os.pipe()
        self.control, self.acknowledgement = control[1], acknowledgement[0]
        self.process = subprocess.Popen(
            ["perf", "stat", "-x", ",", "-o", output, "-D", "-1", "-e", event, "-p", str(pid),
             "--control", f"fd:{control[0]},{acknowledgement[1]}"],
            pass_fds=(control[0], acknowledgement[1]), stdin=subprocess.DEVNULL)
        os.close(control[0])
        os.close(acknowledgement[1])
        os.write(self.control, b"enable\n")
        assert b"ack" in os.read(self.acknowledgement, 100)

    def count(self):
        os.write(self.control, b"disable\n")
        os.read(self.acknowledgement, 100)
        self.process.send_signal(2)
        self.process.wait(timeout=60)
        os.close(self.control)
        os.close(self.acknowledgement)
        lines = self.output.read_text(encoding="utf-8").splitlines()
        return int(next(line for line in lines if line and line[0] != "#").split(",")[0])


@pytest.mark.parametrize("steps", [["faults=20000"], ["thread=5000"] * 4, ["fork=5000"] * 4])
def test_a_twin_that_perf_counts_agrees(nhmtap, tmp_path, steps):
    with Puppet() as puppet:
        process = nhmtap.attach("profile", "-e", "page-faults", "-c", "1", "--by", "pid,ip", "-p",
                                puppet.pid)
        twin = Twin(puppet.pid, "page-faults", tmp_path / "perf")
        # After a fork the parent takes one more fault for each page that was shared.
        for step in [*steps, "faults=0", "faults=0"]:
            puppet.do(step)
        counted = twin.count()
        record = nhmtap.interrupt(process).one("profile")
    assert record["value"] == counted
    assert record["samples"]["expected"] <= counted
    assert record["samples"]["expected"] >= counted - record["samples"]["uncertainty"]
    assert sum(e["samples"] for e in record["entries"] if puppet.touched(e["ip"])) + lost(
        record) >= 20000


def test_stat_counts_what_perf_counts(nhmtap, tmp_path):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults", "-p", puppet.pid)
        twin = Twin(puppet.pid, "page-faults", tmp_path / "perf")
        for step in ("faults=1000", "fork=1000", "thread=1000", "faults=0", "faults=0"):
            puppet.do(step)
        counted = twin.count()
        assert nhmtap.interrupt(process).count("page-faults") == counted


# --- full tables ----------------------------------------------------------------------------------


def test_as_many_keys_as_fit_lose_nothing(nhmtap):
    result = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "ip", "--",
                    program("ips"), "2000", before=pinned())
    record = result.of("profile")[0]
    assert record["samples"]["lost"] == {"table_full": 0, "handler_skipped": 0}
    assert sum(1 for entry in result.entries() if entry["samples"] == 1) >= 2000
    assert (result.of("warning"), result.err) == ([], "")


def test_a_full_table_counts_what_it_has_no_slot_for(nhmtap):
    result = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "ip", "--top", "10",
                    "--", *held(program("ips"), "30000"), before=pinned())
    record = result.one("profile")
    samples = record["samples"]
    assert samples["lost"]["table_full"] >= 30000 - SLOTS
    # The table may have been read once between the program's start and its 30,000.
    assert 10 + record["rest"]["entries"] <= SLOTS + samples["expected"] - 30000
    # The program itself makes 30,000 of them, and its start some more.
    assert samples["aggregated"] + lost(record) == samples["expected"]
    assert 30000 <= samples["expected"] <= record["value"]
    assert record["value"] - samples["expected"] <= samples["uncertainty"]


def test_a_table_is_used_up_to_where_keys_collide(nhmtap):
    # A lookup tries sixteen slots. With a good hash, no key is lost while less than half of the
    # slots are in use, and very few below three quarters.
    result = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "ip", "--top", "1",
                    "--", *held(program("ips"), SLOTS // 2), before=pinned())
    assert result.one("profile")["samples"]["lost"]["table_full"] <= SLOTS // 100


def test_a_table_that_fills_is_emptied_before_it_is_full(nhmtap):
    """Without intervals, only the BPF program wakes nhmtap."""
    result = profile_while_stopped(nhmtap, ["-e", "page-faults:u", "-c", "1", "--by", "ip", "--top", "1"], 4,
                                   program("ips"), SLOTS // 2)
    samples = result.one("profile")["samples"]
    assert samples["expected"] >= 2 * SLOTS
    assert samples["lost"]["table_full"] <= SLOTS // 50


def test_losses_of_intervals_add_up_to_the_whole(nhmtap):
    result = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "ip", "-I", "10", "--top",
                    "10", "--", *held(program("ips"), "30000"), before=pinned())
    end = result.one("end")["samples"]
    records = result.of("profile")
    assert end["lost"]["table_full"] >= 30000 - SLOTS
    for member in ("expected", "aggregated"):
        assert sum(record["samples"][member] for record in records) == end[member]
    for cause in end["lost"]:
        assert sum(record["samples"]["lost"][cause] for record in records) == end["lost"][cause]


def test_keys_that_have_a_slot_keep_it_when_the_table_is_full(nhmtap):
    with Puppet(before=pinned()) as puppet:
        process = nhmtap.attach("profile", "-e", "page-faults:u", "-c", "1", "--by", "ip", "--top",
                                "1", "-C", pinned()[-1])
        stop(process.pid)
        puppet.do("faults=50000")
        subprocess.run([*pinned(), program("ips"), "30000"], check=True)
        puppet.do("faults=50000")
        process.send_signal(signal.SIGCONT)
        result = nhmtap.interrupt(process)
    record = result.one("profile")
    assert record["samples"]["lost"]["table_full"] >= 30000 - SLOTS
    entry, = record["entries"]
    assert puppet.touched(entry["ip"]) and entry["samples"] == 100000


def test_files_for_other_viewers_say_what_was_lost(nhmtap, tmp_path):
    files = {form: tmp_path / form for form in remarks.READERS}
    process = nhmtap.attach("profile", "-e", "page-faults:u", "-c", "1", "--by", "ip", "--top", "1", "-C", pinned()[-1],
                            "-o", "json=-", *(word for form, path in files.items() for word in ("-o", f"{form}={path}")))
    stop(process.pid)
    subprocess.run([*pinned(), program("ips"), "30000"], check=True)
    process.send_signal(signal.SIGCONT)
    samples = nhmtap.interrupt(process).one("profile")["samples"]
    lost = samples["lost"]["table_full"]
    assert lost >= 30000 - SLOTS and samples["uncertainty"] > 0
    for form, path in files.items():
        said = remarks.READERS[form](path)
        assert [text for text in said if "table_full" in text and str(lost) in text.replace(",", "")], (form, said)
        if form not in ("folded", "speedscope"):  # which have no place for what is of little weight
            assert [text for text in said if text.endswith(f" {samples['uncertainty']}")], (form, said)


def test_the_first_interval_that_loses_much_is_warned_of(nhmtap):
    process = nhmtap.attach("profile", "-e", "page-faults:u", "-c", "1", "--by", "ip", "--top", "1",
                            "-I", "20", "-C", pinned()[-1])
    for _ in range(3):
        stop(process.pid)
        subprocess.run([*pinned(), program("ips"), "30000"], check=True)
        process.send_signal(signal.SIGCONT)
    result = nhmtap.interrupt(process)
    warning = result.one("warning", event="page-faults:u", cause="table_full", of="samples")
    before = result.records[warning["seq"] - 1]
    assert before["start_time"] == warning["start_time"]
    assert (warning["lost"], warning["total"]) == (
        before["samples"]["lost"]["table_full"], before["samples"]["expected"])
    assert "--by" in warning["remedy"]
    assert result.err == f"nhmtap: page-faults:u: {warning['why']}. Next: {warning['remedy']}.\n"


# --- tables that are emptied ----------------------------------------------------------------------

# Programs that run one after the other, each with faults at some fifty places of its own: more keys
# in total than the tables of two CPUs have slots. The programs pause now and then, and nhmtap has a
# higher priority, so that it has time to empty the tables. NHMTAP_EVERY=1: 16,000 programs.
ROUNDS = 20 if os.environ.get("NHMTAP_EVERY") else 2
FIRST = ["nice", "-n", "-10"]
PROGRAMS = f"""echo ready
read go
for round in $(seq {ROUNDS}); do
    i=0; while [ $i -lt 800 ]; do /bin/true; i=$((i + 1)); [ $((i % 20)) = 0 ] && sleep 0.02; done
    sleep 0.2
done
echo done
read end"""


@pytest.mark.parametrize("interval", [["-I", "500"], []], ids=["in intervals", "at once"])
@pytest.mark.parametrize("keys", [["--by", "pid,ip"], ["--by", "symbol"], ["-g"]], ids=" ".join)
def test_ever_new_keys_find_room(nhmtap, tmp_path, keys, interval):
    with subprocess.Popen(["sh", "-c", PROGRAMS], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdout.readline() == "ready\n"
        wait_asleep(shell.pid)
        process = nhmtap.attach("profile", "-e", "page-faults", "-c", "1", *keys, "--top", "10",
                                *interval, "-p", shell.pid, before=FIRST)
        twin = Twin(shell.pid, "page-faults", tmp_path / "perf")
        shell.stdin.write("go\n")
        shell.stdin.flush()
        assert shell.stdout.readline() == "done\n"
        wait_asleep(shell.pid)
        counted = twin.count()
        result = nhmtap.interrupt(process)
        shell.communicate("end\n")
    records = [record for record in result.of("profile") if record.get("part", 1) == 1]
    assert counted > 800 * ROUNDS * 40
    assert sum(record["samples"]["expected"] for record in records) == counted
    for record in records:
        full = record["samples"]["lost"]["table_full"] + record.get("stacks", {}).get("table_full", 0)
        assert full <= record["samples"]["expected"] / 100
    assert (len(records) > 1) == bool(interval)


def test_keys_of_past_intervals_are_forgotten(nhmtap, tmp_path, monkeypatch):
    # AddressSanitizer's quarantine of freed memory would count.
    monkeypatch.setenv("ASAN_OPTIONS", "quarantine_size_mb=0:thread_local_quarantine_size_kb=0")

    def memory(times):
        """Returns the peak memory of a run in which 20,000 new keys come that many times."""
        result = nhmtap.into(tmp_path / str(times), "profile", "-e", "page-faults:u", "-c", "1", "--by",
                             "pid,ip", "--top", "10", "-I", "20", "--", "nice", "-n", "10", "sh", "-c",
                             f"for i in $(seq {times}); do {program('ips')} 20000; done", before=FIRST)
        end = result.one("end")
        assert end["samples"]["aggregated"] > times * 5000
        return end["overhead"]["max_rss_bytes"]

    assert memory(20) < 2 * memory(2)


# --- samples that the kernel does not deliver -----------------------------------------------------


def test_samples_that_the_kernel_skips_are_missed(nhmtap):
    # While a task is in bpf(), the kernel silently runs no BPF program on its CPU.
    record = nhmtap("profile", "-e", "cpu-clock", "-c", "100000", "--by", "comm", "--",
                    program("bpfcalls"), "500", before=pinned()).one("profile")
    samples = record["samples"]
    there_should_be = record["value"] // 100000
    assert there_should_be >= 4900
    assert there_should_be - samples["uncertainty"] <= samples["expected"] <= there_should_be
    assert samples["lost"]["timer_missed"] > 0.1 * samples["expected"]


def test_a_program_without_such_calls_misses_hardly_any(nhmtap, tmp_path):
    def missed(turn):
        record = nhmtap.into(tmp_path / str(turn), "profile", "-e", "task-clock", "-c", "1000000",
                             "--by", "comm", "--", *command("spin=100", "exit=0")).one("profile")
        assert record["samples"]["expected"] >= 95
        return lost(record) / record["samples"]["expected"]

    # In some turns ticks are missed because the host takes the CPU away for longer than a period.
    assert any(missed(turn) <= 0.1 for turn in range(20))


def test_what_a_clock_leaves_out_is_said_to_be_excluded(nhmtap, tmp_path):
    # With :u, a clock's ticks in the kernel are not samples, but the clock's count includes them.
    record = nhmtap.into(tmp_path / "out", "profile", "-e", "cpu-clock:u", "-c", "100000", "--by",
                         "comm", "--", *command(*["faults=2000"] * 30, "exit=0")).one("profile")
    assert set(record["samples"]["lost"]) == {"table_full", "excluded"}
    samples = record["samples"]
    assert samples["expected"] >= record["value"] // 100000 - samples["uncertainty"]


# --- intervals ------------------------------------------------------------------------------------


def test_intervals_add_up_to_the_whole(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("profile", "-e", "page-faults", "-c", "1", "--by", "ip", "-I", "10",
                                "-p", puppet.pid)
        for _ in range(20):
            puppet.do("faults=500")
            puppet.do("spin=5")
        result = nhmtap.interrupt(process)
    records = result.of("profile")
    assert len(records) >= 5
    assert sum(record["value"] for record in records) == 10000
    assert sum(entry["samples"] for entry in result.entries()) + sum(map(lost, records)) == 10000
    assert sum(1 for record in records if record["entries"]) > 1
    end = result.one("end")["samples"]
    assert end["aggregated"] == sum(entry["samples"] for entry in result.entries())


def test_an_interval_has_only_the_keys_that_changed_in_it(nhmtap, control):
    # Intervals end on request: a timer could end one while a worker faults.
    with Puppet(workers=2) as puppet:
        process = nhmtap.attach("profile", "-e", "page-faults", "-c", "1", "--by", "tid", control.option,
                                "-p", puppet.pid)
        first = puppet.do("worker=0,100")
        control.do("snapshot")
        control.do("snapshot")
        second = puppet.do("worker=1,100")
        result = nhmtap.interrupt(process)
    assert [{entry["tid"]: entry["samples"] for entry in record["entries"]} for record in result.of("profile")] == [
        {first: 100}, {}, {second: 100}]


# --- uncertainty ----------------------------------------------------------------------------------


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize("step, made", [("vforks=60,3", 60), ("fork=20", 1), ("thread=20", 1)])
def test_processes_that_others_make_do_not_widen_the_uncertainty(nhmtap, tmp_path, step, made, attached):
    options = ["profile", "-e", "page-faults", "-c", "7", "--by", "symbol"]
    others = ["sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); (:); done"]
    if attached:
        with Puppet() as puppet:
            process = nhmtap.attach(*options, "-p", puppet.pid)
            subprocess.run(others, check=True)
            puppet.do(step)
            result = nhmtap.interrupt(process)
    else:
        with subprocess.Popen(others) as beside:
            result = nhmtap.into(tmp_path / "out", *options, "--", *command(step, "spin=50", "exit=0"))
            beside.kill()
    assert result.one("profile")["samples"]["uncertainty"] == 1 + made


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("milliseconds", [1, 10])
def test_reading_often_loses_nothing(nhmtap, milliseconds):
    # A reader that made bpf() calls instead of plain loads would lose a good part of these, because it shares
    # the CPU with the measured program.
    here = pinned()
    with Puppet(before=here) as puppet:
        process = nhmtap.attach("profile", "-e", "page-faults", "-c", "1", "--by", "ip,tid,cpu",
                                "-I", milliseconds, "-p", puppet.pid, before=here)
        for _ in range(40):
            puppet.do("faults=5000")
        result = nhmtap.interrupt(process)
    found = sum(e["samples"] for e in result.entries() if puppet.touched(e["ip"]))
    skipped = result.one("end")["samples"]["lost"]["handler_skipped"]
    # bpf() calls of other processes may cost some samples, which are counted.
    assert found + skipped >= 200000 and skipped < 200


@pytest.mark.parametrize("command_, options", [("profile", ["-c", "10"]), ("profile", ["-c", "9999", "-I", "20"]),
                                               ("profile", ["-c", "7", "--cpu-share", "90%"]), ("mem", ["-c", "10", "--stream"])])
def test_ticks_stand_for_the_least_distance_that_the_kernel_gives_a_clock(nhmtap, tmp_path, command_, options):
    """perf_swevent_start_hrtimer(), kernel/events/core.c, raises shorter periods to 10000 ns."""
    result = nhmtap(command_, "-e", "task-clock", *options, "-o", f"json={tmp_path}/json", "--", *command("spin=100", "exit=0"))
    assert result.status == 0, result.err
    found = parse((tmp_path / "json").read_text())
    assert found[0]["events"][0]["sample_distance"] == 10000
    records = [r for r in found if r["type"] == command_]
    entries = [e for r in records for e in r["entries"]] + [r for r in found if r["type"] == "sample"]
    assert entries and all(e["period"] >= 10000 * e.get("samples", 1) for e in entries)
    stood_for = sum(e["period"] for r in records for e in [*r["entries"], r.get("rest", {"period": 0})])
    records = [r for r in records if "value" in r]  # not the further parts of a record
    value = sum(r["value"] for r in records)
    lost = sum(r["samples"]["expected"] - r["samples"]["aggregated"] for r in records)
    if "--cpu-share" not in options:
        uncertain = max(r["samples"]["uncertainty"] for r in records)
        assert stood_for == 10000 * sum(r["samples"]["aggregated"] for r in records)
        assert abs(value - stood_for - 10000 * lost) <= 10000 * (uncertain + 1)
