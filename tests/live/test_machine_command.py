# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap machine, and --machine of other commands: what they refuse, and what they ask the machine's driver for.
A driver that only shows how it was called stands in its place; tests/machine has runs of the real one."""
import json
import os
import shutil
import subprocess

import pytest
from idle_machine import idle_machine
from records import NHMTAP

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAM = os.environ.get("NHMTAP_FILE", NHMTAP)  # of a caller that is not root: callers.py
COMMANDS = ["stat", "profile", "mem", "offcore", "branch", "analyze", "run", "list", "explain", "doctor"]


@pytest.fixture
def machine(tmp_path):
    """The folder of a machine with such a driver."""
    return idle_machine(tmp_path / "machine", 42)


@pytest.fixture
def asked(nhmtap, machine, tmp_path):
    """A function that runs nhmtap, and returns the arguments that the driver got."""
    def run(*arguments, status=42, **variables):
        environment = {name: value for name, value in os.environ.items() if name not in ("NHM_BUILD", "SHELL")}
        done = nhmtap(*arguments, cwd=tmp_path, env={**environment, "NHMTAP_MACHINE": str(machine), **variables})
        assert done.status == status, done.err
        if status != 42:
            return done.err
        built, folder, *words = done.out.split("\n")[:-1]
        assert (built, folder) == (f"{machine}/built", str(tmp_path))
        return words
    return run


def test_a_command_is_given_to_the_driver_word_for_word(asked):
    assert asked("machine", "printf", "a b", "", "--model") == ["--here", "--", "printf", "a b", "", "--model"]


def test_what_the_machine_is_to_be_is_given_to_the_driver(asked):
    words = asked("machine", "--model", "westmere", "--cpus", "2", "--threads", "2", "--packages", "2", "--memory", "512",
                  "--kernel", "6.1", "--out", "a", "--out=b", "--root", "--date", "now", "--vary", "7", "--ips", "20000000", "--no-snapshot", "--",
                  "true")
    options = words[1:words.index("--")]
    options.remove("--no-snapshot")
    pairs = sorted(zip(options[::2], options[1::2]))
    assert pairs == sorted([("--model", "westmere"), ("--cpus", "2"), ("--threads", "2"), ("--packages", "2"),
                            ("--memory", "512"), ("--kernel", "6.1"), ("--out", "a"), ("--out", "b"), ("--user", "root"),
                            ("--date", "now"), ("--vary", "7"), ("--ips", "20000000")])


def test_without_a_command_it_is_the_callers_shell(asked):
    assert asked("machine", SHELL="/bin/zsh") == ["--here", "--", "/bin/zsh"]
    assert asked("machine", SHELL="") == ["--here", "--", "/bin/sh"]


@pytest.mark.parametrize("arguments, said", [
    (["--model", "eq", "true"], "option --model: the emulated machine has no model 'eq'. Next: did you mean ep, ex?"),
    (["--model", "pentium", "true"], "no model 'pentium'. Next: models: ep, ep-c0,"),
    (["--cpus", "0", "true"], "option --cpus '0': it takes a whole number from 1 to 16."),
    (["--cpus", "3", "--packages", "2", "true"], "the cores of a package must be a power of two. Next: give 1, 2, 4 or 8"),
    (["--cpus", "16", "--threads", "2", "true"], "a machine of 32 logical processors: it has at most 16. Next: give less"),
    (["--kernel", "6.2", "true"], "option --kernel '6.2': no such kernel is built, and there is no such file; built: 6.1. "
                                  "Next: did you mean 6.1?"),
    (["--kernel", "unfinished", "true"], "setup NAME:SUITE"),
    (["--date", "never", "true"], "option --date 'never': it is neither now, nor today, nor seconds since 1970"),
    (["--date", "86399", "true"], "seconds since 1970, from 86400 to 4294967295. Next: --date now"),
    (["--date", "4294967296", "true"], "seconds since 1970, from 86400 to 4294967295. Next: --date now"),
    (["--vary", "4294967296", "true"], "option --vary '4294967296': it takes a whole number from 0 to 4294967295"),
    (["--ips", "9999999", "true"], "option --ips '9999999': it takes a whole number from 10000000 to 4294967295"),
    (["--list", "true"], "option --list with a command: it only shows what there is. Next: leave out one of them."),
    (["--cpu", "2", "--packagez"], "option '--packagez': nhmtap machine has no such option. Next: did you mean --packages?"),
])
def test_what_the_machine_cannot_be_is_refused(asked, arguments, said):
    assert said in asked("machine", *arguments, status=1)


def test_the_list_has_models_kernels_and_how_to_get_more(nhmtap, machine):
    said = nhmtap("machine", "--list", env={**os.environ, "NHMTAP_MACHINE": str(machine), "NHM_BUILD": ""})
    with open(f"{ROOT}/user/machine/src/nhm/nhm_models.inc", encoding="utf-8") as file:
        models = [line.split("(")[1].split(",")[0] for line in file if line.startswith("NHM_MODEL(")]
    lines = said.out.splitlines()
    assert [line.split()[0] for line in lines[1:1 + len(models)]] == models
    assert "  ep              Intel(R) Xeon(R) CPU X5570 @ 2.93GHz (the default)" in lines
    assert lines[lines.index(f"kernels (--kernel) that are built in {machine}/built:") + 1] == "  6.1"
    assert "unfinished" not in said.out and "user/machine/setup NAME:SUITE" in said.out


def test_the_list_has_the_events_that_a_model_counts(nhmtap, machine):
    def events(*model):
        said = nhmtap("machine", "--list", *model, env={**os.environ, "NHMTAP_MACHINE": str(machine), "NHM_BUILD": ""})
        return said.out.split("what uses another one is told:\n")[1].splitlines()

    with open(f"{ROOT}/user/machine/events-modelled.txt", encoding="utf-8") as file:
        modelled = {line.split()[2] for line in file}
    nehalems = events()
    assert {line.split()[2] for line in nehalems} == modelled and len(nehalems) == len(modelled)
    assert "  0x0B 0x01 MEM_INST_RETIRED.LOADS" in nehalems
    core2 = [line.split() for line in events("--model", "core2")]
    assert ["0xCB", "0x01", "MEM_LOAD_RETIRED.L1D_MISS"] in core2
    for code, umask, name in core2:  # each can be asked for by the name in the list
        said = subprocess.run([NHMTAP, "explain", "--cpu", "core2", "--format", "json", name], capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        attr = json.loads(said.stdout.splitlines()[0])["event"]["attr"]
        assert int(attr["config"], 16) == int(code, 16) | int(umask, 16) << 8, name
    assert events("--model", "netburst") == ["  some of NetBurst's, which have no list"]


def test_a_machine_that_is_not_built_is_refused_with_the_way_to_build_it(asked, machine):
    os.remove(machine / "built" / "nhm-bochs")
    shutil.rmtree(machine / "built" / "kernel")
    assert "is not built" in asked("machine", "true", status=2)
    assert "Next: build it once, in some minutes: make machine, in the source tree" in asked("stat", "--machine", "true", status=2)


def test_an_installed_program_finds_an_installed_machine(nhmtap, machine, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NHM", "MAKE"))}
    subprocess.run(["make", "-C", ROOT, "-s", "install-machine", f"DESTDIR={tmp_path}/to", "prefix=/usr",
                    f"NHM_BUILD={machine}/built"], env=environment, check=True, stdout=subprocess.DEVNULL)
    (tmp_path / "to" / "usr" / "bin").mkdir()
    shutil.copy(PROGRAM, tmp_path / "to" / "usr" / "bin" / "nhmtap")
    driver = tmp_path / "to" / "usr" / "lib" / "nhmtap" / "machine" / "run"
    assert driver.read_bytes() == open(f"{ROOT}/user/machine/run", "rb").read()
    driver.write_text((machine / "run").read_text())
    said = subprocess.run([tmp_path / "to" / "usr" / "bin" / "nhmtap", "machine", "true"], env=environment, check=False,
                          capture_output=True, text=True)
    assert said.stdout.split("\n")[0] == f"{driver.parent}/built", said.stderr


def test_nothing_to_copy_back_is_refused_by_the_option(nhmtap):
    said = nhmtap("machine", "--out", "x", "--out", "", "--", "true")
    assert said.status == 1 and said.err == "nhmtap: option --out '': it names nothing. Next: name a file or a folder that COMMAND makes.\n"


def test_a_folder_without_a_driver_is_refused(asked, tmp_path):
    said = asked("machine", "true", NHMTAP_MACHINE=str(tmp_path), status=2)
    assert f"the emulated machine in $NHMTAP_MACHINE, '{tmp_path}': its driver 'run' is not there" in said


def test_a_program_without_a_machine_beside_it_says_how_to_get_one(nhmtap, tmp_path):
    shutil.copy(PROGRAM, tmp_path / "nhmtap")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NHM")}
    said = nhmtap("machine", "true", env=environment, before=["sh", "-c", f'shift; exec {tmp_path}/nhmtap "$@"', "sh"])
    assert said.status == 2
    assert "the emulated machine: it is not installed beside this program. Next: install it (make install-machine)" in said.err


# --- the same command line, on the machine -------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_the_option(nhmtap, command):
    assert "--machine[=MODEL[,cpus=N…]]" in nhmtap(command, "--help").out


def words_of(*arguments, before=()):
    return ["--here", *before, "--user", "root", "--", os.path.realpath(PROGRAM), *arguments]


def test_the_command_line_is_run_again_without_the_option(asked):
    assert asked("stat", "-e", "cycles", "--machine", "--", "x", "--machine") == words_of("stat", "-e", "cycles", "--", "x",
                                                                                       "--machine")
    assert asked("mem", "--machine=westmere-ex", "-c", "7", "x") == words_of("mem", "-c", "7", "x",
                                                                            before=["--model", "westmere-ex"])
    assert asked("list", "cache", "--machine") == words_of("list", "cache")
    assert asked("doctor", "--machine", "--selftest") == words_of("doctor", "--selftest")
    assert asked("branch", "--machine=ep", "--machine=ex", "x") == words_of("branch", "x", before=["--model", "ex"])
    assert asked("profile", "-e", "--machine", "--machine", "x") == words_of("profile", "-e", "--machine", "x")


@pytest.mark.parametrize("chosen, before", [
    ("westmere,cpus=2", ["--model", "westmere", "--cpus", "2"]),
    ("threads=2,packages=2,memory=512", ["--packages", "2", "--threads", "2", "--memory", "512"]),
    ("ips=20000000", ["--ips", "20000000"]),
    ("model=ex,kernel=6.1,date=now,vary=3,no-snapshot", ["--model", "ex", "--kernel", "6.1", "--date", "now", "--vary", "3",
                                                         "--no-snapshot"]),
    ("no-snapshot", ["--no-snapshot"]),
    ("cpus=1,cpus=4", ["--cpus", "4"]),
])
def test_the_machine_of_a_command_is_chosen_in_one_word(asked, chosen, before):
    assert asked("stat", f"--machine={chosen}", "x") == words_of("stat", "x", before=before)


@pytest.mark.parametrize("chosen, said", [
    ("ep,cpu=2", "with 'cpu': there is no such choice. Next: did you mean cpus? --machine=MODEL,cpus=2; it takes model, cpus,"),
    ("ep,cpus", "with 'cpus': its value is missing"),
    ("ep,", "with '': there is no such choice"),
    ("ep,cpus=", "with cpus '': it takes a whole number from 1 to 16"),
    ("ep,cpus=-1", "with cpus '-1': it takes a whole number from 1 to 16"),
    ("ep,memory=99999999999999999999", "with memory '99999999999999999999': it takes a whole number from 128 to 65536"),
    ("no-snapshot=1", "with 'no-snapshot': it takes no value"),
    ("cpus=3,packages=2", "the cores of a package must be a power of two"),
    ("kernel=6.2", "option --kernel '6.2': no such kernel is built"),
    ("model=eq", "no model 'eq'. Next: did you mean ep, ex?"),
])
def test_a_choice_that_there_is_not_is_refused(asked, chosen, said):
    assert said in asked("stat", f"--machine={chosen}", "x", status=1)


def test_files_that_records_go_to_are_written_back(asked, tmp_path):
    words = asked("profile", "--machine", "-o", "a.json", "-o", "table=/b/c", "-o", "-", "-o", "/dev/null", "x")
    outs = [words[i + 1] for i, word in enumerate(words[:words.index("--")]) if word == "--out"]
    assert outs == [f"{tmp_path}/a.json", "/b/c"]
    words = asked("doctor", "--machine", "-o", "found")
    assert words[words.index("--out") + 1] == f"{tmp_path}/found"


def test_files_of_config_are_written_back(asked, tmp_path):
    config = {"outputs": [{"path": "out.json"}, {"format": "table"}],
              "activities": [{"name": "counts", "command": "stat", "event": "task-clock"}]}
    (tmp_path / "c.json").write_text(json.dumps(config))
    words = asked("run", "--machine", "c.json", "--", "true")
    assert words[words.index("--out") + 1] == f"{tmp_path}/out.json"
    assert words[words.index("--") + 2:] == ["run", "c.json", "--", "true"]


@pytest.mark.parametrize("arguments, said", [
    (["-p", "1"], "option --machine with --pid '1': the emulated machine has none of this host's processes. "
                  "Next: measure a command: -- COMMAND."),
    (["-t", "1"], "with --tid '1'"),
    (["-G", "/x"], "with --cgroup '/x': the emulated machine has none of this host's cgroups"),
    (["--for-each-cgroup", "/x"], "with --for-each-cgroup '/x'"),
    (["--container", "ab"], "with --container 'ab'"),
    (["--control", "fifo:c", "x"], "with --control 'fifo:c'"),
    (["--listen", "unix:l", "x"], "with --listen 'unix:l': nobody can connect to the emulated machine"),
    (["-o", "unix:l", "x"], "with --output 'unix:l': the emulated machine has no network and no socket of this host"),
    (["-o", "otlp=http://h/v1/metrics", "x"], "with --output 'http://h/v1/metrics'"),
    (["-o", "openmetrics=listen", "x"], "with --output 'listen'"),
    (["-o", "pprof=%t.gz", "x"], "with --output '%t.gz'"),
    (["-o", "fifo", "x"], "with --output 'fifo': it is no regular file, which could be brought back"),
])
def test_what_is_of_this_host_alone_is_refused(asked, tmp_path, arguments, said):
    os.mkfifo(tmp_path / "fifo")
    assert said in asked("stat", "--machine", *arguments, status=1)


@pytest.mark.parametrize("part, said", [
    ({"listen": "unix:l"}, "--listen 'unix:l'"),
    ({"outputs": [{"path": "tcp:localhost:1"}]}, "--output 'tcp:localhost:1'"),
    ({"activities": [{"name": "s", "command": "stat", "pid": "1"}]}, "--pid '1'"),
])
def test_what_is_of_this_host_alone_is_refused_in_config(asked, tmp_path, part, said):
    (tmp_path / "c.json").write_text(json.dumps({"activities": [{"name": "s", "command": "stat"}], **part}))
    assert said in asked("run", "--machine", "c.json", "--", "true", status=1)


def test_the_model_is_looked_at_first(asked):
    assert "no model 'x'" in asked("stat", "--machine=x", "-p", "1", NHMTAP_MACHINE="/nowhere", status=1)
    assert "no model ''" in asked("stat", "--machine=", "true", status=1)
