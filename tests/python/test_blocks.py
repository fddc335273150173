# SPDX-License-Identifier: GPL-2.0-only
"""measure(): blocks of the process's own code."""
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading

import pytest
from puppet import command
from records import NHMTAP, validator
from suites import PACKAGE, touch

import nhmtap as module
from nhmtap import inprocess


@pytest.fixture(autouse=True)
def program(monkeypatch):
    monkeypatch.setenv("NHMTAP", os.path.abspath(NHMTAP))
    gc.collect()
    yield
    inprocess.close_sessions()


def faults(block):
    with module.measure("page-faults") as m:
        block()
    return m["page-faults"].value


def test_a_block_is_counted_and_nothing_besides():
    touch(5000)
    with module.measure("page-faults", "cpus_utilized") as m:
        touch(2000)
    touch(5000)
    assert 2000 <= m["page-faults"].value < 3000
    assert m["cpus_utilized"] > 0
    assert m["page-faults"] > 1999


def test_records_of_a_block_pass_their_schemas():
    with module.measure("page-faults", "cpus_utilized") as m:
        touch(10)
    assert {r["type"] for r in m.records} == {"start", "count", "metric"}
    for record in m.records:
        validator(record["type"]).validate(record)


def test_a_block_may_be_entered_again():
    m = module.measure("page-faults")
    for pages in (1000, 3000, 2000):
        with m:
            touch(pages)
        assert pages <= m["page-faults"].value < pages + 500


def test_blocks_nest_and_the_outer_does_not_count_the_inners_nhmtap():
    with module.measure("page-faults", "task-clock") as outer:
        touch(1000)
        with module.measure("page-faults") as inner:
            touch(2000)
            with module.measure("page-faults") as innermost:
                touch(500)
    assert 500 <= innermost["page-faults"].value < 700
    assert 2500 <= inner["page-faults"].value < 2900
    # Starting the two inner measurements takes some hundred more in this process.
    assert 3500 <= outer["page-faults"].value < 4000


def test_the_same_block_does_not_nest():
    m = module.measure("page-faults")
    with m:
        with pytest.raises(module.Error, match="is being measured already"):
            with m:
                pass


def test_threads_are_counted_new_ones_and_old_ones():
    go, done = threading.Event(), threading.Event()

    def wait():
        go.wait()
        touch(2000)
        done.set()
    old = threading.Thread(target=wait)
    old.start()

    def block():
        go.set()
        done.wait()
        new = threading.Thread(target=touch, args=(1000,))
        new.start()
        new.join()
    assert 3000 <= faults(block) < 4000
    old.join()


def test_a_process_that_is_forked_is_counted():
    def block():
        pid = os.fork()
        if not pid:
            try:
                touch(40000)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
    # Parent and child both write pages that they share after the fork, some thousand or as many as the interpreter has. If the
    # child were counted twice, there would be 80000.
    assert 40000 <= faults(block) < 80000


def test_a_child_that_leaves_the_block_does_no_harm():
    ours, theirs = os.pipe()
    with module.measure("page-faults") as m:
        pid = os.fork()
        if pid:
            touch(2000)
            os.waitpid(pid, 0)
    if not pid:
        # The child has left the block too: it has no counts, can measure on its own, and does not
        # hang.
        try:
            with module.measure("page-faults") as own:
                touch(100)
            os.write(theirs, f"{len(m)} {own['page-faults'].value >= 100}".encode())
        finally:
            os._exit(0)
    assert os.read(ours, 100) == b"0 True"
    assert m["page-faults"] >= 2000
    with m:
        touch(1000)
    assert m["page-faults"] >= 1000


def test_a_command_is_counted():
    def block():
        subprocess.run(command("faults=3000", "exit=0"), check=True)
    assert 3000 <= faults(block) < 4000


def test_an_exception_in_a_block_passes_and_the_counts_are_there():
    m = module.measure("page-faults")
    with pytest.raises(KeyError, match="mine"):
        with m:
            touch(1000)
            raise KeyError("mine")
    assert m["page-faults"] >= 1000


def test_an_empty_block_is_measured():
    m = module.measure("page-faults", "cs")
    empty = m.empty_block()
    assert set(empty) == {"page-faults", "cs"}
    assert empty["page-faults"].value < 100
    assert len(m) == 0


def test_what_the_program_refuses_is_refused():
    with pytest.raises(module.Refused, match="did you mean page-faults"):
        with module.measure("page-fautls"):
            raise AssertionError("the block was entered")


def test_nothing_to_measure_is_refused():
    with pytest.raises(ValueError, match="name events or metrics"):
        module.measure()


def test_what_was_not_measured_is_named():
    with module.measure("page-faults") as m:
        pass
    with pytest.raises(KeyError, match="cs was not measured; measured: page-faults"):
        m["cs"]


def test_names_are_found_as_the_program_finds_them():
    with module.measure("PAGE-FAULTS", "CPUs_utilized") as m:
        touch(10)
    assert m["page-faults"].value == m["PAGE-FAULTS"].value >= 10
    assert m["cpus_utilized"] > 0


def test_metrics_of_own_tables_are_known(tmp_path):
    folder = tmp_path / "generic"
    folder.mkdir()
    (folder / "metrics.json").write_text(json.dumps([
        {"name": "faults_twice", "description": "Page faults, doubled", "unit": "faults",
         "formula": "2 * page-faults", "source": "reasoning"}]))
    with module.measure("faults_twice", "page-faults", options=["--events-dir", tmp_path]) as m:
        touch(1000)
    assert m["faults_twice"].value == 2 * m["page-faults"].value >= 2000


def dies(pid):
    """Kills a process that is not a child of this one, and waits until it is gone."""
    descriptor = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([descriptor], [], [])
    os.close(descriptor)


def test_an_nhmtap_that_dies_is_an_error():
    with pytest.raises(module.Ended, match="nhmtap ended while it measured"):
        with module.measure("page-faults") as m:
            dies(m._session.pid)


def test_the_blocks_own_exception_comes_before_that():
    with pytest.raises(KeyError, match="mine"):
        with module.measure("page-faults") as m:
            dies(m._session.pid)
            raise KeyError("mine")
    with module.measure("page-faults") as m:  # and the next one works
        touch(1000)
    assert m["page-faults"] >= 1000


def test_sessions_end_with_the_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import nhmtap\nwith nhmtap.measure('page-faults') as m: pass\n"
                      "from nhmtap import inprocess\n"
                      "print(*[session.pid for session in inprocess._sessions], flush=True)\n"
                      "input()\nimport os\nos._exit(0)\n")
    package = os.path.dirname(os.path.dirname(module.__file__))
    with subprocess.Popen(["/usr/bin/python3", script], stdout=subprocess.PIPE, text=True,
                          stdin=subprocess.PIPE, env=os.environ | {"PYTHONPATH": package}) as process:
        descriptor = os.pidfd_open(int(process.stdout.readline()))
        process.stdin.write("\n")
        process.stdin.close()
        assert select.select([descriptor], [], [], 120)[0]
        os.close(descriptor)


def test_a_profile_of_a_block_is_a_stream():
    def work():
        for _ in range(300):
            touch(100)
    profile, records = inprocess.profile_block(work)
    assert profile.samples["aggregated"] > 0
    assert sum(profile.share(name).value for name in profile) == pytest.approx(1)
    for record in records:
        validator(record["type"]).validate(record)
    assert records[-1]["type"] == "end"


def run(source, **options):
    """Runs a script that uses the package, in a process of its own."""
    code = f"import os, sys\nsys.path.insert(0, {PACKAGE!r})\nimport nhmtap\nfrom nhmtap import inprocess\n{source}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500, check=False,
                          **options)


def test_a_block_that_closes_all_descriptors_gets_no_byte_into_its_files(tmp_path):
    done = run(f"""
m = nhmtap.measure("page-faults")
with m:  # a session is idle after it, whose descriptors are closed as well
    pass
try:
    with nhmtap.measure("cs"):
        os.closerange(3, 100)
        own = [os.open({str(tmp_path)!r} + f"/{{i}}", os.O_RDWR | os.O_CREAT) for i in range(60)]
except nhmtap.Ended as error:
    print(error)
with m:
    pass
print(m["page-faults"].value >= 0)
del m
inprocess.close_sessions()
for fd in own:
    os.fstat(fd)  # is still open
""")
    assert done.returncode == 0, done.stderr
    said, counted = done.stdout.splitlines()
    assert "descriptors of nhmtap were closed" in said and counted == "True"
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b""}


def test_an_idle_nhmtap_that_was_killed_fails_no_later_block():
    m = module.measure("page-faults")
    for _ in range(3):
        with m:
            touch(1000)
        assert 1000 <= m["page-faults"].value < 1500
        session = inprocess._idle[0][1]
        with open(f"/proc/{session.pid}/stat", encoding="ascii"):
            handle = os.pidfd_open(session.pid)
        os.kill(session.pid, signal.SIGKILL)
        select.select([handle], [], [])
        os.close(handle)


def test_a_launcher_that_was_killed_is_started_again():
    for event in ("page-faults", "cs"):
        with module.measure(event):
            pass
        launcher = inprocess._the_launcher._process
        launcher.kill()
        launcher.wait()


@pytest.mark.parametrize("closed", [[0], [1], [2], [1, 2], [0, 1, 2]])
def test_a_process_without_standard_streams_measures(tmp_path, closed):
    done = run(f"""
for fd in {closed}:
    os.close(fd)
for _ in range(2):
    with nhmtap.measure("page-faults") as m:
        pass
open({str(tmp_path / "told")!r}, "w").write(str(m["page-faults"].value >= 0))
""")
    assert (tmp_path / "told").read_text() == "True", done.stderr


def test_interrupts_leave_no_nhmtap_behind():
    """Wherever the interrupt comes, in a block or on the way into it or out of it."""
    done = run("""
import gc, random, signal, time

def stop(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, stop)
random.seed(7)
for i in range(60):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 0.03))
        while True:
            with nhmtap.measure("page-faults"):
                pass
    except (KeyboardInterrupt, nhmtap.Ended):
        signal.setitimer(signal.ITIMER_REAL, 0)
with nhmtap.measure("page-faults"):
    pass
gc.collect()

def measuring():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"-p\\0{os.getpid()}\\0" in open(f"/proc/{pid}/cmdline").read():
                found.append(pid)
        except OSError:
            pass
    return found

end = time.monotonic() + 30
while len(measuring()) > inprocess.IDLE_MOST and time.monotonic() < end:
    time.sleep(0.05)
print(len(measuring()) <= inprocess.IDLE_MOST, len(inprocess._idle), len(measuring()))
""")
    assert done.stdout.startswith("True"), done.stdout + done.stderr
