# SPDX-License-Identifier: GPL-2.0-only
"""What else may be on a file system that stops to answer: COMMAND, its interpreter and its working directory, the
root of a target, CONFIG. Nothing keeps SIGTERM waiting, and the pages are served. What waited for
the file system would never end."""
import json
import os
import signal
import subprocess
import sys

import pytest
from asked import ask
from sessions import Session, faults, until
from stalling import Mount


@pytest.fixture(name="mount")
def fixture_mount(tmp_path):
    program = tmp_path / "program"
    subprocess.run(["gcc", "-O1", "-static", "-x", "c", "-o", program, "-"], check=True, text=True, input="""
        #include <unistd.h>
        int main(int argc, char **argv)
        {
            write(1, "x", 1);
            for (volatile long i = 0; argc > 1; i++)
                ;
        }""")
    script = tmp_path / "script"
    script.write_text(f"#!{tmp_path}/mount/program\n")
    script.chmod(0o755)
    mount = Mount(tmp_path / "mount", program, script)
    yield mount
    mount.end()


COMMANDS = {
    "a program": lambda folder: [folder / "mount" / "program"],
    "its interpreter": lambda folder: [folder / "script"],
    "its folder in PATH": lambda folder: ["program"],
    "its working directory": lambda folder: ["./program"],
    "what another one executes": lambda folder: ["env", "A=1", folder / "mount" / "program"],
}


def start(nhmtap, tmp_path, mount, way, stalls, *options):
    """The command has no pipe for a stream, so that nobody waits for it because it is stuck. A shell is there before
    the file system stalls, in the working directory."""
    command = nhmtap.command("stat", "-e", "page-faults", "-I", 50, "-o", tmp_path / "out", *options, "--",
                             *COMMANDS[way](tmp_path))
    run = subprocess.Popen(["sh", "-c", 'echo; read go; exec "$@" > /dev/null', "-", *command], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=open(tmp_path / "err", "w"),
                           env={**os.environ, "PATH": f"{os.environ['PATH']}:{tmp_path}/mount"},
                           cwd=tmp_path / "mount" if "directory" in way else None)
    assert run.stdout.read(1)
    mount.stall(stalls)
    run.stdin.write(b"\n")
    run.stdin.close()
    return run


def types(path):
    text = path.read_text() if path.exists() else ""
    return [json.loads(line)["type"] for line in text[:text.rfind("\n") + 1].splitlines()]


@pytest.mark.parametrize("stalls", ["lookup", "open", "read", "all"])
@pytest.mark.parametrize("way", COMMANDS)
def test_sigterm_ends_a_run_whose_command_is_stuck_before_it_begins(nhmtap, tmp_path, mount, way, stalls):
    place = f"unix:{tmp_path}/http"
    run = start(nhmtap, tmp_path, mount, way, stalls, "--listen", place)
    until(lambda: types(tmp_path / "out").count("count") >= 3)
    assert ask(place, "/healthz")[1] == "ok\n"
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=240) == 128 + signal.SIGTERM
    assert types(tmp_path / "out")[-1] == "end"
    assert "does not answer" in (tmp_path / "err").read_text()


@pytest.mark.parametrize("way", ["a program", "its working directory"])
def test_a_command_that_begins_late_is_measured(nhmtap, tmp_path, mount, way):
    run = start(nhmtap, tmp_path, mount, way, "all")
    until(lambda: types(tmp_path / "out").count("count") >= 3)
    mount.stall("none")
    assert run.wait(timeout=240) == 0
    assert sum(r["value"] for r in map(json.loads, (tmp_path / "out").read_text().splitlines()) if r["type"] == "count") > 0


def test_a_command_that_turns_out_late_to_be_none_is_refused(nhmtap, tmp_path, mount):
    mount.stall("all")
    run = subprocess.Popen(nhmtap.command("stat", "-e", "page-faults", "-I", 50, "-o", tmp_path / "out", "--",
                                          mount.folder / "none"), stderr=subprocess.PIPE, text=True)
    until(lambda: types(tmp_path / "out").count("count") >= 3)
    mount.stall("none")
    assert "there is no such program" in run.communicate(timeout=240)[1] and run.returncode == 127


ROOTED = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.unshare(0x00020000)
libc.mount(b"none", b"/", None, 0x4000 | 1 << 18, None)
os.chroot(sys.argv[1])
os.chdir("/")
os.execv("/program", ["/program", "spin"])
"""


@pytest.mark.parametrize("moment", ["start", "interval", "end"])
def test_a_target_in_a_mount_namespace_whose_root_stalls_is_measured(nhmtap, tmp_path, mount, moment):
    with subprocess.Popen([sys.executable, "-c", ROOTED, mount.folder], stdout=subprocess.PIPE) as target:
        target.stdout.read(1)
        if moment == "start":
            mount.stall("all")
        place = f"unix:{tmp_path}/http"
        activities = [{"name": way, "command": "profile", "event": "cpu-clock", "freq": 199, "pid": str(target.pid),
                       "interval_ms": 100, **more}
                      for way, more in {"symbols": {"by": "symbol"}, "stacks": {"by": "stack"}}.items()]
        with Session(nhmtap, tmp_path, activities, listen=place) as session:
            session.until(lambda records: sum(r["type"] == "profile" for r in records) >= 2)
            if moment == "interval":
                mount.stall("all")
            if moment != "end":
                before = session.text().count('"profile"')
                until(lambda: session.text().count('"profile"') > before + 3)
                assert ask(place, "/healthz")[1] == "ok\n" and ask(place, "/readyz")[0]
            mount.stall("all")
            assert session.end().status == 0
        mount.kill()
        target.kill()


def test_a_config_that_stalls_at_hup_is_told_and_what_was_asked_for_goes_on(nhmtap, tmp_path, puppet, mount):
    asked = [faults("counts", "stat", pid=str(puppet.pid))]
    place = f"unix:{tmp_path}/http"
    with Session(nhmtap, tmp_path, asked, listen=place) as session:
        kept = session.config.with_name("kept")
        session.config.rename(kept)
        session.config.symlink_to(mount.folder / "config.json")
        (mount.folder / "config.json").write_bytes(kept.read_bytes())
        session.hup()
        mount.stall("all")
        session.hup()
        assert ask(place, "/healthz")[1] == "ok\n"
        puppet.do("faults=10")
        session.do("snapshot")
        mount.stall("none")
        session.hup()
        puppet.do("faults=5")
        result = session.end()
    told = result.of("error")  # after the snapshot, another one if the file system's own process is slow to begin again
    assert len([r for r in told if r["seq"] < result.of("count")[0]["seq"]]) == 1
    assert all("its file system does not answer" in r["why"] and "config.json" in r["asked"] for r in told)
    assert result.status == 0 and sum(r["value"] for r in result.of("count")) == 15


def test_a_config_that_stalls_at_the_start_is_refused(nhmtap, tmp_path, mount):
    (mount.folder / "config.json").write_text("{}")
    mount.stall("all")
    result = nhmtap("run", mount.folder / "config.json")
    assert result.status == 1 and "its file system does not answer" in result.err
